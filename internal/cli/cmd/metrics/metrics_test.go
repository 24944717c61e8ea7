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

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
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
	store(h, deployment)
	store(h, job, pod.Condition{Type: "Failed", Status: "True"})

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

// store stores a workload, without a controller.
func store(h *clitest.Host, text string, conditions ...pod.Condition) {
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
