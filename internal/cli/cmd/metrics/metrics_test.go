package metrics_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/workload"
)

// usage is what metrics prints of the container app of clitest.UpMeasured, without its labels.
const usage = `container_cpu_usage_seconds_total 5
container_cpu_user_seconds_total 4
container_cpu_system_seconds_total 1
container_cpu_cfs_periods_total 200
container_cpu_cfs_throttled_periods_total 50
container_cpu_cfs_throttled_seconds_total 2.5
container_memory_working_set_bytes 1.048576e+07
container_memory_usage_bytes 1.1534336e+07
container_memory_max_usage_bytes 3.3554432e+07
container_memory_rss 2.097152e+06
container_memory_cache 3.145728e+06
container_memory_mapped_file 4096
container_memory_total_active_file_bytes 2048
container_memory_total_inactive_file_bytes 1.048576e+06
container_memory_kernel_usage 65536
container_memory_swap 8192
container_oom_events_total 1
container_fs_reads_bytes_total 512
container_fs_writes_bytes_total 3.145728e+06
container_fs_reads_total 1
container_fs_writes_total 6
container_threads 3
container_threads_max 2048
container_spec_cpu_period 100000
container_spec_cpu_quota 50000
container_spec_memory_limit_bytes 6.7108864e+07
`

// series returns the lines of a container's usage, without its labels.
func series(text, container string) string {
	labels := fmt.Sprintf(`{container=%q,namespace="default",pod="web",image="busybox:1"}`, container)
	var out strings.Builder
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, labels); ok {
			out.WriteString(name + value)
		}
	}
	return out.String()
}

func TestMetrics(t *testing.T) {
	h := clitest.NewHost(t)
	h.UpMeasured()
	got := h.Run("metrics")
	if got.Code != 0 || got.Err != "" || series(got.Out, "app") != usage {
		t.Errorf("%d %q\n%s\n%s", got.Code, got.Err, series(got.Out, "app"), got.Out)
	}
	for _, line := range []string{
		`pod_cpu_usage_seconds_total{namespace="default",pod="web"} 5`,
		`pod_memory_working_set_bytes{namespace="default",pod="web"} 4.194304e+07`,
		`kube_pod_status_phase{namespace="default",pod="web",uid="UID",phase="Running"} 1`,
		`kube_pod_container_status_running{namespace="default",pod="web",uid="UID",container="log-shipper"} 1`,
		`kube_pod_init_container_status_terminated_reason{namespace="default",pod="web",uid="UID",container="prepare",reason="Completed"} 1`,
		`container_memory_failures_total{container="app",namespace="default",pod="web",image="busybox:1",failure_type="pgmajfault",scope="container"} 7`,
		`resource_scrape_error 0`,
	} {
		if !strings.Contains(regexp.MustCompile(`uid="[^"]+"`).ReplaceAllString(got.Out, `uid="UID"`), "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

// TestMetricsWithoutCgroupController checks that what the kernel does not measure is left out.
func TestMetricsWithoutCgroupController(t *testing.T) {
	h := clitest.NewHost(t)
	h.UpMeasured("cpu.max", "memory.current", "memory.stat", "memory.max", "memory.events", "memory.swap.current", "memory.peak", "io.stat", "pids.current", "pids.max")
	got := h.Run("metrics")
	want := "container_cpu_usage_seconds_total 5\ncontainer_cpu_user_seconds_total 4\ncontainer_cpu_system_seconds_total 1\n"
	if got.Code != 0 || series(got.Out, "app") != want || strings.Contains(got.Out, "container_memory_rss") {
		t.Errorf("%d %q\n%s", got.Code, got.Err, got.Out)
	}
}

// TestMetricsOfDamagedPod checks that a pod that cannot be read does not hide the others.
func TestMetricsOfDamagedPod(t *testing.T) {
	h := clitest.NewHost(t)
	h.UpMeasured()
	h.Script = func(s *clitest.Supervisor) { s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app"))) }
	if got := h.Run("up", "-d", h.File(strings.Replace(clitest.OneContainer, "name: web", "name: bad", 1))); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(h.Dirs.Pod("default", "bad").RuntimeDir(), "status.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := h.Run("metrics")
	if got.Code != 1 || !strings.HasPrefix(got.Err, "podrun: read metrics: ") || series(got.Out, "app") != usage ||
		!strings.Contains(got.Out, `kube_pod_info{namespace="default",pod="web"`) || strings.Contains(got.Out, `pod="bad"`) || !strings.HasSuffix(got.Out, "\nresource_scrape_error 1\n") {
		t.Errorf("%d %q\n%s", got.Code, got.Err, got.Out)
	}
}

func writeSet(t *testing.T, h *clitest.Host, name string, s store.Set) {
	t.Helper()
	if err := h.Dirs.WriteSet(name, &s); err != nil {
		t.Fatal(err)
	}
}

// shop is a set that is back at its version after another one has failed twice, with other variables.
var shop = store.Set{
	Source: "oci://registry.example.org/team/shop:1", State: store.SetSettled,
	Current:  &store.SetVersion{Digest: "sha256:1", Revision: "main@sha1:4f2c", Version: "1.0"},
	Rejected: []store.SetReject{{Digest: "sha256:2", Inputs: "a"}, {Digest: "sha256:2", Inputs: "b"}},
	History: []store.SetChange{
		{At: time.Unix(1700000000, 0), Result: store.SetApplied, Digest: "sha256:1"},
		{At: time.Unix(1700000060, 0), Result: store.SetFailed, Digest: "sha256:2"},
	},
}

func TestMetricsOfSets(t *testing.T) {
	h := clitest.NewHost(t)
	if got := h.Run("metrics"); got.Code != 0 || strings.Contains(got.Out, "podrun_follow") {
		t.Errorf("without sets: %+v", got)
	}
	writeSet(t, h, "shop", shop)
	writeSet(t, h, "first", store.Set{State: store.SetTrying, Next: &store.SetVersion{Digest: "sha256:3"}})
	changing := shop
	changing.State = store.SetReturning
	writeSet(t, h, "undone", changing)
	lock, err := h.Dirs.LockSet("undone")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if free, err := lock.TryExclusive(); err != nil || !free {
		t.Fatalf("%v, %v", free, err)
	}
	got := h.Run("metrics")
	if got.Code != 0 || got.Err != "" {
		t.Fatalf("%+v", got)
	}
	var lines []string
	for line := range strings.Lines(got.Out) {
		if strings.HasPrefix(line, "podrun_follow_") && !strings.HasSuffix(line, " 0\n") {
			lines = append(lines, line)
		}
	}
	const want = `podrun_follow_info{set="first",source="",digest="",revision="",version=""} 1
podrun_follow_info{set="shop",source="oci://registry.example.org/team/shop:1",digest="sha256:1",revision="main@sha1:4f2c",version="1.0"} 1
podrun_follow_info{set="undone",source="oci://registry.example.org/team/shop:1",digest="sha256:1",revision="main@sha1:4f2c",version="1.0"} 1
podrun_follow_state{set="first",state="interrupted"} 1
podrun_follow_state{set="shop",state="settled"} 1
podrun_follow_state{set="undone",state="returning"} 1
podrun_follow_ready{set="shop",digest="sha256:1"} 1
podrun_follow_last_change_timestamp_seconds{set="shop",result="failed"} 1.70000006e+09
podrun_follow_last_change_timestamp_seconds{set="undone",result="failed"} 1.70000006e+09
podrun_follow_rejected{set="shop",digest="sha256:2"} 1
podrun_follow_rejected{set="undone",digest="sha256:2"} 1
`
	if diff := cmp.Diff(want, strings.Join(lines, "")); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{`podrun_follow_state{set="first",state="trying"} 0`, `podrun_follow_ready{set="first",digest=""} 0`, `podrun_follow_ready{set="undone",digest="sha256:1"} 0`} {
		if !strings.Contains(got.Out, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	write(t, filepath.Join(h.Dirs.Data, "sets/first/set.json"), "{")
	if got := h.Run("metrics"); got.Code != 1 || !strings.HasPrefix(got.Err, "podrun: read metrics: read the record of set first: ") || !strings.Contains(got.Out, `podrun_follow_ready{set="shop"`) {
		t.Errorf("a damaged record: %+v", got)
	}
}

// TestDashboard checks that every metric that the dashboard queries is exported.
func TestDashboard(t *testing.T) {
	testenv.Need(t, func() error {
		all, err := net.Interfaces()
		if err == nil && len(all) < 2 {
			err = fmt.Errorf("there is no network interface besides the loopback")
		}
		return err
	})
	h := clitest.NewHost(t)
	cgroup := h.UpMeasured()
	// This process stands for the container's.
	write(t, filepath.Join(cgroup, "app/cgroup.procs"), fmt.Sprintln(os.Getpid()))
	write(t, filepath.Join(h.Dirs.Pod("default", "web").LibcontainerDir(), "app-0/state.json"), fmt.Sprintf(`{"init_process_pid": %d}`, os.Getpid()))
	app := clitest.WaitingContainer("app", "CrashLoopBackOff", "")
	app.LastState.Terminated = &pod.Terminated{ExitCode: 1, Reason: "Error"}
	st := clitest.Status(pod.Running, app, clitest.RunningContainer("log-shipper"))
	st.Conditions = []pod.Condition{{Type: "Ready", Status: "False"}}
	put(h, deployment)
	put(h, job, pod.Condition{Type: "Failed", Status: "True"})
	writeSet(t, h, "shop", shop)

	text := h.Run("metrics").Out // with the usage of app
	h.Supervisor("default", "web").Publish(st)
	text += h.Run("metrics").Out
	for _, name := range queried(t) {
		if !strings.Contains(text, "\n"+name+"{") {
			t.Errorf("the dashboard queries %s, which is not exported", name)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n"
	job        = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n"
)

// put stores a workload, without a controller.
func put(h *clitest.Host, text string, conditions ...pod.Condition) {
	h.T.Helper()
	objects, err := manifest.LoadInNamespace("", []byte(text), "default", nil)
	if err != nil {
		h.T.Fatal(err)
	}
	o := objects[0].Stored
	if err := h.Dirs.PutObject(o); err != nil {
		h.T.Fatal(err)
	}
	w, err := h.Dirs.Workload(o.Kind, o.Namespace, o.Name)
	if err == nil {
		err = w.WriteState(&workload.State{Conditions: conditions})
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

// queried returns the metrics in the queries of the dashboard.
func queried(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../../../docs/how-to/podrun-dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, regexp.MustCompile(`\b[a-z_]+\{`).FindAllString(target.Expr, -1)...)
		}
	}
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "{")
	}
	if len(all) < 20 {
		t.Errorf("the dashboard queries only %q", all)
	}
	return all
}
