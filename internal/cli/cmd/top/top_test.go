package top_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
)

const topHead = "CPU(cores)  LIMIT  MEMORY(bytes)  LIMIT  PIDS  READ  WRITTEN  PSI(cpu)  PSI(memory)  PSI(io)\n"

func TestTop(t *testing.T) {
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("top"), 0, "", "No running pods found in default namespace.\n")
	h.UpMeasured()
	const row = "0m  500m  %dMi  64Mi  3  1Ki  3Mi  1.50  0.00  0.25\n"
	for args, want := range map[string]string{
		"top":                               "NAME  " + topHead + "web  " + fmt.Sprintf(row, 40),
		"top web -A":                        "",
		"top -A":                            "NAMESPACE  NAME  " + topHead + "default  web  " + fmt.Sprintf(row, 40),
		"top web --containers":              "POD  NAME  " + topHead + "web  app  " + fmt.Sprintf(row, 10) + "web  log-shipper  " + fmt.Sprintf(row, 30),
		"top --containers --sort-by memory": "POD  NAME  " + topHead + "web  log-shipper  " + fmt.Sprintf(row, 30) + "web  app  " + fmt.Sprintf(row, 10),
		"top --interval 5s":                 "",
		"top -w --interval 1ms":             "",
		"top --sort-by pids":                "",
		"top -o wide":                       "",
		"top nosuch":                        "",
		"top -n other --containers":         "",
	} {
		got := h.Run(strings.Fields(args)...)
		if clitest.OneSpace(strings.ReplaceAll(got.Out, " \n", "\n")) != want || (got.Err == "") != (want != "") || strings.Contains(got.Err, "panic") {
			t.Errorf("%s: %d %q\n%s", args, got.Code, got.Err, got.Out)
		}
	}
	var list []podstats.UsageJSON
	if err := json.Unmarshal([]byte(h.Run("top", "-o", "json").Out), &list); err != nil || len(list) != 1 || len(list[0].Containers) != 2 ||
		*list[0].Memory != 40<<20 || *list[0].Limits.CPU != 500 || *list[0].Containers[1].Written != 3<<20 || *list[0].Pressure.CPU != 1.5 {
		t.Errorf("%v: %+v", err, list)
	}
}

// TestTopWithoutCgroupController checks that a missing cgroup controller is reported once, and that the other
// values are shown.
func TestTopWithoutCgroupController(t *testing.T) {
	h := clitest.NewHost(t)
	h.UpMeasured("memory.current", "memory.stat", "memory.max", "memory.pressure", "io.stat", "io.pressure", "cpu.pressure")
	p := h.Begin("", "top", "-w", "--interval", "200ms")
	clitest.Eventually(t, "three lines", func() bool { return strings.Count(p.Out.String(), " web ") >= 3 })
	if n := strings.Count(p.Err.String(), "memory, disk, pressure: not available"); n != 1 {
		t.Errorf("said %d times: %s", n, p.Err.String())
	}
	out := p.Out.String()
	if !strings.HasPrefix(out, "TIME ") || strings.Count(out, "NAME") != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	if f := strings.Fields(strings.Split(out, "\n")[1]); strings.Join(f[1:], " ") != "web 0m 500m - - 3 - - - - -" {
		t.Errorf("%q", f)
	}
	p.Interrupt()
}

// TestTopRates checks that the CPU usage is that between two samples, and of a container's newest instance.
func TestTopRates(t *testing.T) {
	h := clitest.NewHost(t)
	cg := h.UpMeasured()
	p := h.Begin("", "top", "-w", "--containers", "--interval", "200ms", "-o", "json")
	p.WaitOutput("cpuMillicores")
	// Only one sample sees the rise, so what it has to contain comes first, and the rise in one step.
	if err := os.RemoveAll(cg + "/log-shipper"); err != nil { // it has ended, and the status is not updated yet
		t.Fatal(err)
	}
	if err := os.WriteFile(cg+"/app/next", []byte("usage_usec 100000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(cg+"/app/next", cg+"/app/cpu.stat"); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "the container that worked", func() bool {
		for line := range strings.Lines(p.Out.String()) {
			var list []podstats.UsageJSON
			if json.Unmarshal([]byte(line), &list) == nil && len(list) == 1 && len(list[0].Containers) == 1 && *list[0].Containers[0].CPU > 1000 {
				return true
			}
		}
		return false
	})
	p.Interrupt()
	h.Supervisor("default", "web").Kill()
	if got := h.Run("top", "web"); got.Code != 1 || got.Err != "podrun: pod web is not running: it uses nothing\nhint: podrun ps lists the pods\n" {
		t.Errorf("%+v", got)
	}
}
