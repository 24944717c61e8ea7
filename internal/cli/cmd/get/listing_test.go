package get_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// TestListing checks the selection, order and output of objects of one kind, of several kinds and by name.
func TestListing(t *testing.T) {
	h := clitest.NewHost(t)
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {app: web}}, data: {size: 10Mi, num: '3000000'}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: db}}, data: {size: 9Mi, esc: \"\\e[2J\"}}",
		"{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, ports: [{port: 80}]}}",
	} {
		if got := h.Run("apply", "-f", h.File(text)); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	s := h.UpDetached(clitest.ThreeContainers, nil)
	s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app"), clitest.RunningContainer("log-shipper")))
	for args, want := range map[string]string{
		"get cm -o name":                                             "configmap/a\nconfigmap/b\n",
		"get cm --sort-by .data.size -o name":                        "configmap/a\nconfigmap/b\n",
		"get cm -l app=web -o name":                                  "configmap/b\n",
		"get cm -l app!=web,app -o name":                             "configmap/a\n",
		"get cm --field-selector metadata.name!=a -o name":           "configmap/b\n",
		"get pods --field-selector status.phase=Running -o name":     "pod/web\n",
		"get pods,cm -o name":                                        "pod/web\nconfigmap/a\nconfigmap/b\n",
		"get cm/b pod/web -o name":                                   "configmap/b\npod/web\n",
		"get all -o name":                                            "pod/web\nservice/s\n",
		"get cm b -o jsonpath={.data.num}{.nosuch}":                  "3000000",
		"get cm -o jsonpath={.items[*].metadata.name}":               "a b",
		"get cm b -o jsonpath-as-json={.data.num}":                   "[\n    \"3000000\"\n]\n",
		"get cm -o custom-columns=N:metadata.name,S:{.data.size}":    "N     S\na     9Mi\nb     10Mi\n",
		"get cm a --no-headers -o custom-columns=E:.data.esc,X:.no":  "\\u001b[2J   <none>\n",
		"get pods -o jsonpath={range.items[*]}{.metadata.name}{end}": "web",
	} {
		clitest.CheckResult(t, h.Run(strings.Fields(args)...), 0, want, "")
	}
	got := h.Run("get", "svc,cm,pvc", "--show-labels")
	if f := strings.Fields(got.Out); got.Err != "" || !strings.HasPrefix(got.Out, "NAME        TYPE ") || !strings.Contains(got.Out, "\n\nNAME          DATA   AGE   LABELS\nconfigmap/a   2      ") || f[len(f)-1] != "app=web" {
		t.Errorf("%+v", got)
	}
	if got := h.Run("ps", "--no-headers"); !strings.HasPrefix(got.Out, "web   0/2") {
		t.Errorf("%+v", got)
	}
	got = h.Run("get", "cm/a", "secret/x")
	if got.Code != 1 || !strings.Contains(got.Out, "configmap/a") || !strings.Contains(got.Err, `secret "x" not found`) {
		t.Errorf("%+v", got)
	}
	clitest.CheckResult(t, h.Run("get", "cm", "-l", "app=none"), 0, "", "No resources found in default namespace.\n")
}

// TestWatchPods checks that a pod is printed again when its row changes, and only then.
func TestWatchPods(t *testing.T) {
	h := clitest.NewHost(t)
	all := h.Begin("", "ps", "-w") // before there is any pod
	s := h.UpDetached(clitest.OneContainer, nil)
	all.WaitOutput("web    ")
	names := h.Begin("", "get", "pod", "web", "-w", "-o", "name")
	names.WaitOutput("pod/web")
	s.Publish(clitest.Status(pod.Running, clitest.TerminatedContainer("app", 1, "Error", "")))
	all.WaitOutput("web    0/1     Error")
	names.WaitOutput("pod/web\npod/web")
	s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
	all.WaitOutput("web    1/1     Running")
	s.AddEvents(new(pod.EventLog), pod.Event{Type: pod.Normal, Reason: "Nothing", Last: time.Now()})
	s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	all.WaitOutput("web    0/1     Completed")
	if n := strings.Count(all.Out.String(), "Running"); n > 2 { // once as it began, perhaps
		t.Errorf("shown %d times:\n%s", n, all.Out.String())
	}
	if n := strings.Count(all.Out.String(), "NAME "); n != 1 {
		t.Errorf("%d heads:\n%s", n, all.Out.String())
	}
	if got := h.Run("down", "web"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := names.Wait(); got.Code != 0 { // its pod is gone
		t.Errorf("%+v", got)
	}
	all.Interrupt()
	clitest.CheckResult(t, h.Run("get", "pod", "web", "-w"), 1, "", "podrun: pod \"web\" not found\nhint: podrun ps lists the pods\n")
}
