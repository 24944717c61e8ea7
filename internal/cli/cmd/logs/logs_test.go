package logs_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

const defaulted = "Defaulted container \"app\" out of: app, log-shipper, prepare (init)\n"

func TestLogs(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(strings.Replace(clitest.ThreeContainers, "{name: web}", "{name: web, labels: {app: web}}", 1), func(s *clitest.Supervisor) {
		s.Log("prepare", 0, "stdout F prepared")
		s.Log("app", 0, "stdout F first life")
		s.Log("app", 1, "stdout F one", "stderr P two ", "stderr F halves", "stdout F three", "stdout P no newline")
	})
	app := clitest.RunningContainer("app")
	app.RestartCount = 1
	app.LastState.Terminated = &pod.Terminated{ExitCode: 1, Reason: "Error"}
	st := clitest.Status(pod.Running, app, clitest.WaitingContainer("log-shipper", "ContainerCreating", ""))
	st.InitContainers = []pod.ContainerStatus{clitest.TerminatedContainer("prepare", 0, "Completed", "")}
	s.Publish(st)
	const stamp = "2026-01-02T03:04:05.000000006Z "
	for name, tc := range map[string]struct {
		args string
		code int
		out  string
		err  string
	}{
		"default container":       {"logs web", 0, "one\ntwo halves\nthree\nno newline", defaulted},
		"flags after":             {"logs web -c prepare", 0, "prepared\n", ""},
		"pod/ prefix":             {"logs pod/web -c prepare", 0, "prepared\n", ""},
		"tail":                    {"logs web --tail=2 -c app", 0, "three\nno newline", ""},
		"tail counts whole lines": {"logs web --tail=3 -c app", 0, "two halves\nthree\nno newline", ""},
		"timestamps":              {"logs --timestamps --tail 3 web -c app", 0, stamp + "two halves\n" + stamp + "three\n" + stamp + "no newline", ""},
		"prefix":                  {"logs --prefix web -c app --tail 2", 0, "[pod/web/app] three\n[pod/web/app] no newline\n", ""},
		"previous":                {"logs -p web -c app", 0, "first life\n", ""},
		"all": {"logs web --all-containers --prefix --tail 1", 0, "[pod/web/prepare] prepared\n[pod/web/app] no newline\n",
			"container \"log-shipper\" in pod \"web\" is waiting to start: ContainerCreating\n"},
		"not started": {"logs web -c log-shipper", 1, "",
			"podrun: container \"log-shipper\" in pod \"web\" is waiting to start: ContainerCreating\nhint: podrun logs -f waits for it\n"},
		"no previous": {"logs web -p -c prepare", 1, "", "podrun: previous terminated container \"prepare\" in pod \"web\" not found\n"},
		"no such container": {"logs web -c nosuch", 1, "",
			"podrun: container \"nosuch\" not found in pod \"web\"\nhint: its containers are app, log-shipper, prepare (init)\n"},
		"no such pod":            {"logs nosuch", 1, "", "podrun: pod \"nosuch\" not found\nhint: podrun ps lists the pods\n"},
		"no such namespace":      {"logs -n other web", 1, "", "podrun: pod \"web\" not found in namespace \"other\"\nhint: podrun ps -A lists the pods of all namespaces\n"},
		"no pod":                 {"logs", 2, "", "podrun: logs requires the names of pods, or --selector\nhint: podrun logs --help\n"},
		"all and one":            {"logs web --all-containers -c app", 2, "", "podrun: --all-containers and --container are mutually exclusive\nhint: podrun logs --help\n"},
		"raw in a pipe":          {"logs web --raw -c prepare", 0, "prepared\n", ""},
		"since long ago":         {"logs web -c app --since-time 2026-01-02T03:04:05Z --tail 2", 0, "three\nno newline", ""},
		"since later":            {"logs web -c app --since-time 2026-01-02T03:04:06Z", 0, "", ""},
		"since a duration":       {"logs web -c app --since 2h45m", 0, "", ""},
		"limit":                  {"logs web -c app --limit-bytes 7", 0, "one\ntwo", ""},
		"limit at a newline":     {"logs web -c app --limit-bytes 4", 0, "one\n", ""},
		"limit before a newline": {"logs web -c app --limit-bytes 3", 0, "one", ""},
		"limit beyond the end":   {"logs web -c prepare --limit-bytes 100", 0, "prepared\n", ""},
		"limit counts times":     {"logs web -c prepare --timestamps --limit-bytes 34", 0, stamp + "pre", ""},
		"limit of each":          {"logs web --all-containers --prefix --limit-bytes 2", 0, "[pod/web/prepare] pr\n[pod/web/app] on\n", "container \"log-shipper\" in pod \"web\" is waiting to start: ContainerCreating\n"},
		"selector":               {"logs -l app=web,!old -c app --tail 1", 0, "no newline", ""},
		"selector without tail":  {"logs -l app -c prepare", 0, "prepared\n", ""},
		"selector of nothing":    {"logs -l app=db", 0, "", "No resources found in default namespace.\n"},
		"several":                {"logs web web -c prepare --prefix", 0, "[pod/web/prepare] prepared\n[pod/web/prepare] prepared\n", ""},
		"selector and name":      {"logs -l app=web web", 2, "", "podrun: only a selector (-l) or a POD name is allowed\nhint: podrun logs --help\n"},
		"bad selector":           {"logs -l app=web=x", 2, "", "podrun: --selector cannot be \"app=web=x\": found '=', expected: ',' or 'end of string'\nhint: podrun logs --help\n"},
		"tail of less":           {"logs web --tail -2", 2, "", "podrun: --tail must be a number of lines, or -1 for all\nhint: podrun logs --help\n"},
		"since nothing":          {"logs web --since 0s", 2, "", "podrun: --since must be more than 0\nhint: podrun logs --help\n"},
		"since the future":       {"logs web --since=-5s", 2, "", "podrun: --since must be more than 0\nhint: podrun logs --help\n"},
		"since no duration":      {"logs web --since yesterday", 2, "", "podrun: option --since cannot be \"yesterday\": use a duration such as 90s, 5m or 2h\nhint: podrun logs --help\n"},
		"since both":             {"logs web --since 5s --since-time 2026-01-02T03:04:05Z", 2, "", "podrun: --since and --since-time are mutually exclusive\nhint: podrun logs --help\n"},
		"since no time":          {"logs web --since-time yesterday", 2, "", "podrun: --since-time cannot be \"yesterday\": use a time such as 2026-01-02T15:04:05Z\nhint: podrun logs --help\n"},
		"limit of nothing":       {"logs web --limit-bytes 0", 2, "", "podrun: --limit-bytes must be more than 0\nhint: podrun logs --help\n"},
		"previous and follow":    {"logs web -p -f", 2, "", "podrun: --previous and --follow are mutually exclusive: an earlier instance writes nothing more\nhint: podrun logs --help\n"},
		"not a number":           {"logs web --tail x", 2, "", "podrun: option --tail cannot be \"x\": use a whole number\nhint: podrun logs --help\n"},
		"a path for a name":      {"logs ../../etc", 1, "", "podrun: pod \"../../etc\" not found\nhint: podrun ps lists the pods\n"},
		"a path for a namespace": {"logs -n .. web", 1, "", "podrun: pod \"web\" not found in namespace \"..\"\nhint: podrun ps -A lists the pods of all namespaces\n"},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckResult(t, h.Run(strings.Fields(tc.args)...), tc.code, tc.out, tc.err) })
	}
}

// TestLogsDuringBackOff checks that in back-off the current log and the previous one come from the last
// instance, as with the kubelet.
func TestLogsDuringBackOff(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F zero")
		s.Log("app", 1, "stdout F one")
	})
	crash := clitest.WaitingContainer("app", "CrashLoopBackOff", "")
	crash.RestartCount = 1
	crash.LastState.Terminated = &pod.Terminated{ExitCode: 1}
	s.Publish(clitest.Status(pod.Running, crash))
	clitest.CheckResult(t, h.Run("logs", "web"), 0, "one\n", "")
	clitest.CheckResult(t, h.Run("logs", "-p", "web"), 0, "one\n", "")
}

func TestLogsHonoursTheDefaultContainerAnnotation(t *testing.T) {
	h := clitest.NewHost(t)
	text := strings.Replace(clitest.ThreeContainers, "{name: web}", `{name: web, annotations: {kubectl.kubernetes.io/default-container: log-shipper}}`, 1)
	h.UpDetached(text, func(s *clitest.Supervisor) { s.Log("log-shipper", 0, "stdout F chosen") })
	clitest.CheckResult(t, h.Run("logs", "web"), 0, "chosen\n", "")
}

func TestLogsFollow(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(strings.Replace(clitest.ThreeContainers, "Never", "OnFailure", 1), nil)
	p := h.Begin("", "logs", "-f", "web", "-c", "app") // nothing is there yet: it waits
	s.Log("app", 0, "stdout F one")
	p.WaitOutput("one\n")
	s.Publish(clitest.Status(pod.Running, clitest.TerminatedContainer("app", 1, "Error", "")))
	s.Log("app", 1, "stdout F two")
	p.WaitOutput("two\n")
	s.Log("app", 1, "stdout F last")
	s.End(clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 1, "Error", "")))
	clitest.CheckResult(t, p.Wait(), 0, "one\ntwo\nlast\n", "")
	// Of a pod that has ended it shows what there is, and ends.
	clitest.CheckResult(t, h.Run("logs", "-f", "web", "-c", "app"), 0, "two\nlast\n", "")
}

// TestLogsFollowOfADoneInitContainer checks that logs -f of a completed init container does not wait for the
// pod.
func TestLogsFollowOfADoneInitContainer(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.ThreeContainers, nil)
	st := clitest.Status(pod.Pending, clitest.WaitingContainer("app", "PodInitializing", ""))
	st.InitContainers = []pod.ContainerStatus{clitest.RunningContainer("prepare")}
	s.Publish(st)
	s.Log("prepare", 0, "stdout F one")
	p := h.Begin("", "logs", "-f", "web", "-c", "prepare")
	p.WaitOutput("one\n")
	s.Log("prepare", 0, "stdout F two")
	st.InitContainers = []pod.ContainerStatus{clitest.TerminatedContainer("prepare", 0, "Completed", "")}
	s.Publish(st)
	clitest.CheckResult(t, p.Wait(), 0, "one\ntwo\n", "")
}

func TestLogsFollowLosesNothing(t *testing.T) {
	const lines = 100_000
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	p := h.Begin("", "logs", "-f", "web")
	batch := make([]string, 0, 100)
	for n := range lines {
		batch = append(batch, "stdout F line "+strings.Repeat("x", n%200))
		if len(batch) == cap(batch) {
			s.Log("app", n*3/lines, batch...) // three instances
			batch = batch[:0]
		}
	}
	s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	got := p.Wait()
	if got.Code != 0 || strings.Count(got.Out, "\n") != lines {
		t.Fatalf("code %d, %d lines of %d", got.Code, strings.Count(got.Out, "\n"), lines)
	}
	for n, line := range strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n") {
		if len(line) != len("line ")+n%200 {
			t.Fatalf("line %d is %q", n, line)
		}
	}
}
