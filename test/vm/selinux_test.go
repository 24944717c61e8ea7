package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// selinuxFiles are the files below /etc/selinux, beside the policy, that SELinux programs need.
// Logins are unconfined, as for Fedora's users.
var selinuxFiles = map[string]string{
	"config":                              "SELINUX=enforcing\nSELINUXTYPE=podrun\n",
	"podrun/seusers":                      "__default__:unconfined_u:s0-s0:c0.c1023\n",
	"podrun/contexts/default_contexts":    "unconfined_r:unconfined_t:s0 unconfined_r:unconfined_t:s0\n",
	"podrun/contexts/failsafe_context":    "unconfined_r:unconfined_t:s0\n",
	"podrun/contexts/default_type":        "unconfined_r:unconfined_t\n",
	"podrun/contexts/dbus_contexts":       "<busconfig><selinux></selinux></busconfig>\n",
	"podrun/contexts/files/file_contexts": "/.* <<none>>\n/dev/(null|zero|full|random|urandom|tty|ptmx) -c system_u:object_r:null_device_t:s0\n",
	"podrun/contexts/lxc_contexts": `process = "system_u:system_r:container_t:s0"
file = "system_u:object_r:container_file_t:s0"
ro_file = "system_u:object_r:container_ro_file_t:s0"
`,
}

// TestSELinux runs the scripts of selinux/ on a host with SELinux in enforcing mode. Its policy,
// selinux/policy.cil, is the part of Fedora's about containers: Debian's takes minutes to load, and
// would need a label on every file of the host.
func TestSELinux(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "selinux")
	m.enforce(t)
	files, err := filepath.Glob("selinux/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts in selinux: %v", err)
	}
	testscript.RunT(machineRunner{t, m}, testscript.Params{Files: files, Cmds: commands(m), Setup: m.setUp, RequireUniqueNames: true})
}

// enforce installs the policy, reboots the machine, and fails t unless the policy is enforced.
func (m *machine) enforce(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "selinux")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range selinuxFiles {
		write(name, text)
	}
	write("podrun/policy/categories", categories())
	policy := filepath.Join(dir, "podrun/policy")
	// 33 is the newest policy version that the machine's kernel supports.
	cmd := exec.Command("secilc", "-c", "33", "-f", os.DevNull, "-o", filepath.Join(policy, "policy.33"), "selinux/policy.cil", filepath.Join(policy, "categories"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile the policy (secilc is of scripts/deps vm): %v\n%s", err, out)
	}
	m.script(t, "put", dir, "/home/dev")
	m.must(t, "root", "sh", "-c", "rm -rf /etc/selinux && mv /home/dev/selinux /etc && chown -R root:root /etc/selinux")
	m.script(t, "reboot")
	if is := m.must(t, "root", "cat", "/sys/fs/selinux/enforce"); is != "1" {
		t.Fatalf("SELinux is not enforced: %q", is)
	}
	if is := m.must(t, "session", "cat", "/proc/self/attr/current"); !strings.HasPrefix(is, "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023") {
		t.Fatalf("the user's programs are %s", is)
	}
}

// categories returns the 1024 categories of all policies.
func categories() string {
	var all, order strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&all, "(category c%d)\n", i)
		fmt.Fprintf(&order, " c%d", i)
	}
	return all.String() + "(categoryorder (" + order.String() + "))\n(sensitivity s0)\n(sensitivityorder (s0))\n(sensitivitycategory s0 (range c0 c1023))\n"
}
