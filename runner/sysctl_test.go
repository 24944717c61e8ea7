package runner

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// Each of the kubelet's safe sysctls holds in the pod, in all its containers, and nowhere
// else (pkg/kubelet/sysctl/safe_sysctls.go).
func TestSafeSysctls(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
	plan.Sysctls = map[string]string{
		"kernel.shm_rmid_forced":              "1",
		"net.ipv4.ip_local_port_range":        "2000 60000",
		"net.ipv4.tcp_syncookies":             "0",
		"net.ipv4.ping_group_range":           "3 100",
		"net.ipv4.ip_unprivileged_port_start": "99",
		"net.ipv4.ip_local_reserved_ports":    "8080,9000-9100",
		"net.ipv4.tcp_keepalive_time":         "601",
		"net.ipv4.tcp_fin_timeout":            "31",
		"net.ipv4.tcp_keepalive_intvl":        "32",
		"net.ipv4.tcp_keepalive_probes":       "5",
		"net.ipv4.tcp_rmem":                   "4096 131073 6291457",
		"net.ipv4.tcp_wmem":                   "4096 16385 4194305",
		"net.ipv4.tcp_slow_start_after_idle":  "0",
		"net.ipv4.tcp_notsent_lowat":          "16385",
	}
	names := slices.Sorted(maps.Keys(plan.Sysctls))
	var script, want strings.Builder
	for _, name := range names {
		script.WriteString("echo $(cat /proc/sys/" + strings.ReplaceAll(name, ".", "/") + ");")
		want.WriteString(plan.Sysctls[name] + "\n")
	}
	w := startWhole(t, plan)
	other := startWhole(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 1000")}), "q"))
	for _, w := range []wholePod{w, other} { // who cleans up waits for all processes
		defer w.removeBeside()
		w.until(running)
	}
	for _, c := range []string{"a", "b"} {
		if code, out := w.ask(c, "/bin/sh", "-c", script.String()); code != 0 || out != want.String() {
			t.Errorf("%s has, %d\n%swant\n%s", c, code, out, want.String())
		}
	}
	code, out := other.ask("c", "/bin/sh", "-c", script.String())
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != len(names)+1 {
		t.Fatalf("%d %q", code, out)
	}
	for i, name := range names {
		if lines[i] == plan.Sysctls[name] {
			t.Errorf("%s is %s in another pod, too", name, lines[i])
		}
	}
}

// A container that is not root, and has no capability, listens on port 80 and pings.
func TestLowPortsAndPingNeedNoRights(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	install(t, l, "anyuser")
	user := shell(l, "user", "exec sleep 1000")
	user.User, user.Capabilities = "1000:1000", nil
	w := startWhole(t, newPlan(nil, []pod.Container{user}))
	defer w.removeBeside()
	w.until(running)
	if code, out := w.ask("user", "anyuser"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}
