package upplan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// web returns a pod's manifest, with a change of one line.
func web(t *testing.T, from, to string) *manifest.Object {
	t.Helper()
	text := `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {a: b}}
spec:
  containers: [{name: app, image: example, command: [serve]}]
`
	list, err := manifest.Load("pod.yaml", []byte(strings.Replace(text, from, to, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return &list[0]
}

// observed is what there is of a pod in a case, in words that observe explains.
func observed(t *testing.T, words string) *upplan.Observed {
	t.Helper()
	o := &upplan.Observed{Plan: &pod.Plan{UID: "u"}, Status: &pod.Status{Phase: pod.Running}, Manifest: web(t, "", "").Pod}
	o.Manifest.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
	for _, word := range strings.Fields(words) {
		switch word {
		case "nothing":
			*o = upplan.Observed{}
		case "running":
			o.Running = true
		case "pending": // it waits for its images
			o.Running, o.Plan.ImagesPending, o.Status.Phase = true, true, pod.Pending
		case "unrecorded":
			o.Manifest, o.Plan = nil, nil
		case "lost": // its processes are gone; its last status says that it runs
		case "nostatus":
			o.Status = nil
		case "succeeded":
			o.Status.Phase = pod.Succeeded
		case "terminated": // by a shutdown of the machine
			o.Status.Phase, o.Status.Reason = pod.Failed, pod.ReasonTerminated
		case "deleting":
			o.Status.Deleting = true
		case "removing":
			o.Removing = true
		case "ran":
			o.HasRun = true
		case "never":
			o.Plan.RestartPolicy = pod.RestartNever
		case "rebooted":
			o.Rebooted = true
		default:
			t.Fatalf("unknown word %s", word)
		}
	}
	return o
}

var actions = map[upplan.Action]string{upplan.Create: "create", upplan.Keep: "keep", upplan.Change: "change", upplan.Replace: "replace"}

func describe(s upplan.Step, err error) string {
	switch {
	case errors.Is(err, upplan.ErrBusy):
		return "busy"
	case errors.Is(err, cmdutil.ErrImmutable):
		return "immutable"
	case err != nil:
		return err.Error()
	}
	text := actions[s.Action]
	if s.Resumed != nil {
		text += fmt.Sprintf(" resumes %s of %d", s.Resumed.UID, s.Resumed.Created.Unix())
	}
	if s.Change != nil {
		text += " metadata: " + fmt.Sprint(s.Change.Old.Labels["a"])
	}
	if s.AwaitsImages {
		text += " awaits images"
	}
	if s.ReplacesPending {
		text += " of a pending pod"
	}
	return text
}

func TestDecide(t *testing.T) {
	same, label, command := [2]string{}, [2]string{"a: b", "a: c"}, [2]string{"serve", "other"}
	plain, replace, recreate := upplan.Rules{}, upplan.Rules{Replace: true}, upplan.Rules{Recreate: true}
	leave := upplan.Rules{Leave: true}
	unit, owner := upplan.Rules{Unit: true}, upplan.Rules{Unit: true, Owned: true}
	const resumed = "create resumes u of 1000"
	for _, c := range []struct {
		what  string
		edit  [2]string
		rules upplan.Rules
		want  string
	}{
		{"nothing", same, plain, "create"},
		{"nothing", same, recreate, "create"},

		{"running", same, plain, "keep"},
		{"running", same, replace, "keep"},
		{"running", same, recreate, "replace"},
		{"running", same, unit, "keep"},
		{"running", label, plain, "change metadata: b"},
		{"running", label, unit, "change metadata: b"},
		{"running", command, plain, "immutable"},
		{"running", command, replace, "replace"},
		{"running", command, unit, "immutable"},
		{"running", command, owner, "replace"},
		{"running", command, leave, "keep"},
		{"running", label, leave, "keep"},
		{"running unrecorded", same, plain, "busy"},
		{"running unrecorded", same, leave, "busy"},
		{"running unrecorded", same, unit, "busy"},

		{"pending", same, plain, "keep awaits images of a pending pod"},
		{"pending", command, plain, "replace of a pending pod"},
		{"pending", command, leave, "keep awaits images of a pending pod"},
		{"lost", command, leave, "create"},
		{"pending", same, unit, "replace of a pending pod"},
		{"pending", same, recreate, "replace"},

		{"lost", same, plain, resumed},
		{"lost nostatus", same, plain, resumed},
		{"lost rebooted", same, unit, resumed},
		{"lost ran", same, plain, resumed},
		{"lost terminated ran", same, plain, resumed},
		{"lost", label, plain, "create"},
		{"lost", same, recreate, "create"},
		{"lost unrecorded", same, plain, "create"},
		{"lost removing", same, plain, "create"},
		{"lost deleting", same, plain, "create"},
		{"lost never", same, plain, resumed},
		{"lost never ran", same, plain, "create"},
		{"lost never ran rebooted", same, plain, "create"},
		{"lost never ran rebooted", same, unit, "keep"},
		{"succeeded", same, plain, "create"},
		{"succeeded", same, unit, "create"},
		{"succeeded rebooted", same, plain, "create"},
		{"succeeded rebooted", same, unit, "keep"},
		{"succeeded rebooted", label, unit, "create"},
	} {
		got := describe(upplan.Decide(web(t, c.edit[0], c.edit[1]), observed(t, c.what), c.rules))
		if got != c.want {
			t.Errorf("%s, %q, %+v: %s, want %s", c.what, c.edit[1], c.rules, got, c.want)
		}
	}
}

// Other pull secrets make no other pod: its ServiceAccount may have others now.
func TestDecideWithOtherPullSecrets(t *testing.T) {
	o := observed(t, "lost")
	o.Manifest.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	if got := describe(upplan.Decide(web(t, "", ""), o, upplan.Rules{})); got != "create resumes u of 1000" {
		t.Error(got)
	}
}

// A pod with the annotation run-at-boot is made anew, where its unit would keep it.
func TestDecideAtBoot(t *testing.T) {
	for _, what := range []string{"succeeded rebooted", "lost never ran rebooted"} {
		want, o := web(t, "labels: {a: b}", "labels: {a: b}, annotations: {podrun.dev/run-at-boot: 'true'}"), observed(t, what)
		o.Manifest.Annotations = want.Pod.Annotations
		if got := describe(upplan.Decide(want, o, upplan.Rules{Unit: true})); got != "create" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// The error of a pod that cannot be changed names at most ten fields.
func TestDecideNamesFields(t *testing.T) {
	want := web(t, "", "")
	for i := range 12 {
		want.Pod.Spec.Volumes = append(want.Pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i)})
	}
	_, err := upplan.Decide(want, observed(t, "running"), upplan.Rules{})
	if !errors.Is(err, cmdutil.ErrImmutable) || !strings.Contains(err.Error(), "spec.volumes") {
		t.Error(err)
	}
}
