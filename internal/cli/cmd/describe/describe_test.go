package describe

import (
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/describe"
	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

// TestNetworkText checks the text of each network mode, with the reason why another mode is not used.
func TestNetworkText(t *testing.T) {
	for want, st := range map[string]pod.Status{
		"auto (masquerade for root, else tproxy, else netstack)": {},
		"masquerade (the kernel forwards packets)":               {Network: pod.NetworkMasquerade},
		"tproxy (the kernel forwards connections)":               {Network: pod.NetworkTProxy},
		"tproxy (the kernel forwards connections; no masquerade: the host has a firewall)": {
			Network: pod.NetworkTProxy, NetworkWhy: "the host has a firewall"},
		"none": {Network: pod.NetworkNone},
	} {
		if got := networkText(&pod.Plan{}, &st); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWorkloadEvents: the page of a workload has the workload's own events.
func TestWorkloadEvents(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	events := manifeststatus.WorkloadEvents(&pod.Object{Kind: pod.KindCronJob, Name: "nightly"}, []pod.Event{
		{Type: pod.Warning, Reason: "ClockSetBack", Message: "The clock was ahead", Count: 2, First: now.Add(-time.Hour), Last: now.Add(-time.Minute)}})
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	page := describe.Object(cron, describe.Related{Events: events}, now)
	if want := regexp.MustCompile(`Warning +ClockSetBack +60s \(x2 over 60m\) +podrun +The clock was ahead\n`); !want.MatchString(page) {
		t.Errorf("the page lacks the event:\n%s", page)
	}
	if page := describe.Object(cron, describe.Related{Events: events, NoEvents: true}, now); strings.Contains(page, "Events:") {
		t.Errorf("the page has events:\n%s", page)
	}
}
