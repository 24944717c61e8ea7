package events_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

func ago(d time.Duration) time.Time { return time.Now().Add(-d) }

func TestEvents(t *testing.T) {
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("events"), 0, "", "No events found in default namespace.\n")
	clitest.CheckResult(t, h.Run("events", "-A"), 0, "", "No events found\n")
	s := h.UpDetached(clitest.ThreeContainers, nil)
	var log pod.EventLog
	backOff := pod.Event{Type: pod.Warning, Reason: "BackOff", Container: "app", Message: "Back-off", Last: ago(65 * time.Second)}
	s.AddEvents(&log, backOff, backOff, pod.Event{Type: pod.Normal, Reason: "Started", Container: "app", Message: "Container started", Last: ago(61 * time.Second)})
	got := h.Run("events", "web")
	want := `LAST SEEN  TYPE  REASON  OBJECT  MESSAGE
65s (x2 over 65s)  Warning  BackOff  Pod/web{app}  Back-off
61s  Normal  Started  Pod/web{app}  Container started
0s  Normal  Pulled  Pod/web{prepare}  Container image "busybox:1" already present on machine
0s  Normal  Pulled  Pod/web{app}  Container image "busybox:1" already present on machine
0s  Normal  Pulled  Pod/web{log-shipper}  Container image "busybox:1" already present on machine
`
	if clitest.OneSpace(got.Out) != want || got.Code != 0 || got.Err != "" {
		t.Errorf("%d %s\n%s", got.Code, got.Err, got.Out)
	}
	clitest.CheckResult(t, h.Run("events", "web", "--types", "Warning,bad"), 2, "", "podrun: unknown event type \"bad\": use Normal or Warning\nhint: podrun events --help\n")
	if got := clitest.OneSpace(h.Run("events", "--types=warning", "-A").Out); got != "NAMESPACE  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\ndefault  65s (x2 over 65s)  Warning  BackOff  Pod/web{app}  Back-off\n" {
		t.Errorf("%s", got)
	}
	if got := clitest.OneSpace(h.Run("events", "--types=Warning", "-o", "wide").Out); !strings.Contains(got, "\n65s (x2 over 65s)  Warning  BackOff  Pod/web  spec.containers{app}  podrun  Back-off  65s  2  web.") {
		t.Errorf("%s", got)
	}
	var list corev1.EventList
	if err := json.Unmarshal([]byte(h.Run("events", "-o", "json").Out), &list); err != nil || len(list.Items) != 5 || list.Items[0].Count != 2 || list.Kind != "EventList" {
		t.Errorf("%v: %+v", err, list)
	}
	clitest.CheckResult(t, h.Run("events", "nosuch"), 1, "", "podrun: pod \"nosuch\" not found\nhint: podrun ps lists the pods\n")
	clitest.CheckResult(t, h.Run("events", "web", "-A"), 2, "", "podrun: a resource cannot be retrieved by name across all namespaces\nhint: podrun events --help\n")
	clitest.CheckResult(t, h.Run("events", "-o", "name"), 2, "", "podrun: unknown output format \"name\": use wide, json or yaml\nhint: podrun events --help\n")
}

// TestEventsAreEscaped checks that control characters of containers and images do not reach the terminal.
func TestEventsAreEscaped(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	var log pod.EventLog
	s.AddEvents(&log, pod.Event{Type: pod.Warning, Reason: "Failed", Message: "Error: \x1b]52;c;aGk=\x07\u202e\n\x1b[2J\u009b", Last: time.Now()})
	for _, args := range []string{"events", "events -o wide", "events -o json", "events -o yaml"} {
		got := h.Run(strings.Fields(args)...)
		obeyed := "\x1b\x07\u009b\u202e"
		if strings.HasSuffix(args, "yaml") { // it has no way to spell what only a terminal minds, and which show takes away there
			obeyed = "\x1b\x07\u009b"
		}
		if got.Code != 0 || strings.ContainsAny(got.Out, obeyed) {
			t.Errorf("%s: %q", args, got.Out)
		}
	}
}

func TestWatchEvents(t *testing.T) {
	h := clitest.NewHost(t)
	all := h.Begin("", "events", "-w") // before there is any pod
	s := h.UpDetached(clitest.OneContainer, nil)
	all.WaitOutput("already present on machine")
	one := h.Begin("", "events", "web", "-w", "-o", "json")
	one.WaitOutput(`"reason": "Pulled"`)
	var log pod.EventLog
	for i := range 3 {
		s.AddEvents(&log, pod.Event{Type: pod.Warning, Reason: "BackOff", Container: "app", Message: "Back-off", Last: time.Now()})
		if i == 0 {
			all.WaitOutput("BackOff")
		}
	}
	all.WaitOutput("(x3 over ")
	one.WaitOutput(`"count": 3`)
	if n := strings.Count(all.Out.String(), "already present"); n != 1 {
		t.Errorf("an event was shown %d times:\n%s", n, all.Out.String())
	}
	if n := strings.Count(all.Out.String(), "LAST SEEN"); n != 1 {
		t.Errorf("%d heads:\n%s", n, all.Out.String())
	}
	s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	if got := h.Run("down", "web"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := one.Wait(); got.Code != 0 { // its pod is gone
		t.Errorf("%+v", got)
	}
	all.Interrupt()
}

// TestEventsOfAChangedImage checks that a running pod has events of the images that a changed manifest needs.
func TestEventsOfAChangedImage(t *testing.T) {
	h, file := clitest.RunningPod(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := h.File(strings.Replace(string(text), "image: example,", "image: busybox:2,", 1))
	h.ImageErr = errors.New("no such tag \x1b[2J")
	if got := h.Run("up", "-d", other); got.Code != 1 {
		t.Fatalf("%+v", got)
	}
	h.ImageErr = nil
	if got := h.Run("up", "-d", "--timeout", "1ms", other); strings.Contains(got.Err, "cannot") {
		t.Fatalf("%+v", got)
	}
	got := clitest.OneSpace(h.Run("events", "web").Out)
	for _, want := range []string{
		`Warning  Failed  Pod/web{app}  Failed to pull image "busybox:2": no such tag \u001b[2J`,
		`Normal  Pulled  Pod/web{app}  Container image "busybox:2" already present on machine`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestEventsOfABrokenPod checks that missing and invalid files of a pod are no error.
func TestEventsOfABrokenPod(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	if err := os.WriteFile(s.Pod.RuntimeDir()+"/events.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := h.Run("events", "web")
	if got.Code != 1 || !strings.HasPrefix(got.Err, "podrun: read events of pod web: ") {
		t.Errorf("%+v", got)
	}
}
