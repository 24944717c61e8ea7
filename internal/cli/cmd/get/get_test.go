package get_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
)

// line finds the row of a pod and cuts its age off.
func line(t *testing.T, out, name string) string {
	t.Helper()
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) > 0 && f[0] == name {
			return strings.Join(f[:len(f)-1], " ")
		}
	}
	t.Fatalf("no row of %s in:\n%s", name, out)
	return ""
}

func TestPs(t *testing.T) {
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("ps"), 0, "", "No resources found in default namespace.\n")
	clitest.CheckResult(t, h.Run("get", "pods", "-A"), 0, "", "No resources found\n")
	s := h.UpDetached(clitest.ThreeContainers, nil)
	st := clitest.Status(pod.Running, clitest.RunningContainer("app"), clitest.RunningContainer("log-shipper"))
	st.InitContainers = []pod.ContainerStatus{clitest.TerminatedContainer("prepare", 0, "Completed", "")}
	s.Publish(st)
	for _, args := range []string{"ps", "get pods", "get web", "get pod web", "get pods/web", "ps web"} {
		got := h.Run(strings.Fields(args)...)
		if got.Code != 0 || got.Err != "" || !strings.HasPrefix(got.Out, "NAME   READY   STATUS    RESTARTS   AGE\n") {
			t.Errorf("%s: %+v", args, got)
		}
		if l := line(t, got.Out, "web"); l != "web 2/2 Running 0" {
			t.Errorf("%s: %q", args, l)
		}
	}
	clitest.CheckResult(t, h.Run("ps", "-o", "name"), 0, "pod/web\n", "")
	clitest.CheckResult(t, h.Run("ps", "-n", "other"), 0, "", "No resources found in other namespace.\n")
	got := strings.Fields(h.Run("ps", "-A", "-o", "wide").Out)
	want := strings.Fields("NAMESPACE NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES default web 2/2 Running 0 AGE <none> " + resource.NodeName() + " <none> <none>")
	if len(got) == len(want) {
		want[len(want)-5] = got[len(got)-5] // its age
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	clitest.CheckResult(t, h.Run("get"), 2, "", "podrun: get requires a kind, such as pods, services or deployments, or the names of pods\nhint: podrun get --help\n")
	clitest.CheckResult(t, h.Run("get", "web", "-A"), 2, "", "podrun: a resource cannot be retrieved by name across all namespaces\nhint: podrun get --help\n")
	clitest.CheckResult(t, h.Run("ps", "nosuch"), 1, "", "podrun: pod \"nosuch\" not found\nhint: podrun ps lists the pods\n")
	clitest.CheckResult(t, h.Run("get", "nosuch", "-o", "yaml"), 1, "", "podrun: pod \"nosuch\" not found\nhint: podrun ps lists the pods\n")
}

// TestPsOfALostPod checks that a pod without a supervisor is not listed as running.
func TestPsOfALostPod(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	s.Kill()
	if l := line(t, h.Run("ps").Out, "web"); l != "web 0/1 ContainerStatusUnknown 0" {
		t.Errorf("%q", l)
	}
	var p corev1.Pod
	if err := yaml.Unmarshal([]byte(h.Run("get", "web", "-o", "yaml").Out), &p); err != nil {
		t.Fatal(err)
	}
	end := p.Status.ContainerStatuses[0].State.Terminated
	if p.Status.Phase != corev1.PodFailed || end == nil || end.ExitCode != 137 || end.Reason != "ContainerStatusUnknown" {
		t.Errorf("%+v", p.Status)
	}
	if !strings.Contains(p.Status.Message, "killed from outside") {
		t.Errorf("message %q", p.Status.Message)
	}
}

func TestGetSaysNotFoundOnce(t *testing.T) {
	h := clitest.NewHost(t)
	for _, args := range []string{"get web", "get pods web", "get web -o yaml", "ps web"} {
		clitest.CheckResult(t, h.Run(strings.Fields(args)...), 1, "", "podrun: pod \"web\" not found\nhint: podrun ps lists the pods\n")
	}
	clitest.CheckResult(t, h.Run("get", "pods"), 0, "", "No resources found in default namespace.\n")
}

func TestGetObjects(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	for _, format := range []string{"json", "yaml"} {
		got := h.Run("get", "web", "-o", format)
		var p corev1.Pod
		if err := yaml.Unmarshal([]byte(got.Out), &p); err != nil || got.Code != 0 {
			t.Fatalf("%s: %v %+v", format, err, got)
		}
		if p.Kind != "Pod" || p.Name != "web" || string(p.UID) != s.Plan.UID || p.CreationTimestamp.IsZero() ||
			p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].State.Running == nil {
			t.Errorf("%s: %+v", format, p)
		}
	}
	var list struct {
		Kind  string
		Items []corev1.Pod
	}
	got := h.Run("get", "pods", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || list.Kind != "List" || len(list.Items) != 1 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestPsEscapes checks that control characters of manifests and containers do not reach the terminal.
func TestPsEscapes(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	s.Publish(clitest.Status(pod.Pending, clitest.WaitingContainer("app", "\x1b]52;c;aGk=\x07Evil\u202e", "")))
	got := h.Run("ps")
	if strings.ContainsAny(got.Out, "\x1b\x07\u202e") || !strings.Contains(got.Out, `\u001b]52;c;aGk=\u0007Evil\u202e`) {
		t.Errorf("%q", got.Out)
	}
}
