package describe

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

// TestWorkloadEvents: the page of a workload has the workload's own events.
func TestWorkloadEvents(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	events := manifeststatus.WorkloadEvents(&pod.Object{Kind: pod.KindCronJob, Name: "nightly"}, []pod.Event{
		{Type: pod.Warning, Reason: "ClockSetBack", Message: "The clock was ahead", Count: 2, First: now.Add(-time.Hour), Last: now.Add(-time.Minute)}})
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	page := Object(cron, Related{Events: events}, now)
	if want := regexp.MustCompile(`Warning +ClockSetBack +60s \(x2 over 60m\) +podrun +The clock was ahead\n`); !want.MatchString(page) {
		t.Errorf("the page lacks the event:\n%s", page)
	}
	if page := Object(cron, Related{Events: events, NoEvents: true}, now); strings.Contains(page, "Events:") {
		t.Errorf("the page has events:\n%s", page)
	}
}

// TestColumns: cells line up, and none of them can write to a terminal.
func TestColumns(t *testing.T) {
	got := Columns([][]string{{"REVISION", "CHANGE-CAUSE"}, {"1", "<none>"}, {"12", "\x1b[2J"}})
	if want := "REVISION  CHANGE-CAUSE\n1         <none>\n12        \\u001b[2J\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAnnotations: they are sorted; a long or a multi-line one has lines of its own, which are cut; kubectl apply's
// own is left out.
func TestAnnotations(t *testing.T) {
	p := newPage(time.Time{})
	p.annotations(map[string]string{
		"b": "2\n", "a": "1", "lines": "x\ny", "long": strings.Repeat("z", 200),
		corev1.LastAppliedConfigAnnotation: "{}",
	})
	want := []string{"Annotations:  a: 1", "b: 2", "lines:", "x", "y", "long:", strings.Repeat("z", 138) + "..."}
	var got []string
	for line := range strings.Lines(p.String()) {
		got = append(got, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p = newPage(time.Time{})
	if p.annotations(nil); p.String() != "Annotations:  <none>\n" {
		t.Errorf("without any: %q", p.String())
	}
}

// TestSource: the page shows where a value comes from, and never the value of a Secret.
func TestSource(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "shop"}}}
	selector := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}
	for want, from := range map[string]*corev1.EnvVarSource{
		"web (v1:metadata.name)":             {FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}},
		"shop (v1:metadata.labels['app'])":   {FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['app']"}},
		"node allocatable (limits.cpu)":      {ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
		" (limits.gpu)":                      {ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.gpu"}},
		"<set to the key 'k' in secret 's'>": {SecretKeyRef: &selector},
	} {
		if got := source(p, &corev1.Container{}, from); len(got) == 0 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
