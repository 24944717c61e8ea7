package vm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// home is the directory of podrun, its examples and the cases' files on a machine.
const home = "/home/dev/podrun"

// A machine is one of the machines that scripts/vm lists.
type machine struct {
	name string
	env  []string // for scripts/vm
}

// machineSlots limits the machines that run at once to the number of processors. The tests in
// noSlot have slots of their own.
var machineSlots = func() chan struct{} {
	all := make(chan struct{}, max(runtime.GOMAXPROCS(0), 2))
	for range cap(all) - 1 {
		all <- struct{}{}
	}
	return all
}()

// noSlot are the tests that do not wait for a slot: the longest, and the test that runs alone.
var noSlot = []string{"TestMachines/debian", "TestSmoke"}

// boot gives t a machine of its own with podrun, its examples and their image, until t ends.
func boot(t *testing.T, name string, env ...string) *machine {
	t.Helper()
	m := start(t, name, env...)
	m.script(t, "put", stage(t, m.arch()), "/home/dev")
	m.must(t, "root", "sh", "-c", "rm -rf "+home+" && mv /home/dev/"+m.arch()+" "+home)
	m.must(t, "session", home+"/scripts/example-image")
	return m
}

// start waits for a slot and gives t a machine of its own, until t ends. env is for scripts/vm.
func start(t *testing.T, name string, env ...string) *machine {
	t.Helper()
	m := &machine{name: name, env: append(env,
		"PODRUN_VM="+os.Getenv("PODRUN_VM"), // a script has another HOME
		"VM_MACHINE="+name,
		"VM_NAME="+os.Getenv(namesEnv)+strings.ReplaceAll(t.Name(), "/", "."),
	)}
	if !slices.Contains(noSlot, t.Name()) {
		<-machineSlots
		m.env = append(m.env, "VM_CPUS=1") // several CPUs on one processor wait for each other
	}
	t.Cleanup(func() { machineSlots <- struct{}{} })
	if os.Getenv(keepEnv) == "" || len(env) > 0 { // another image or memory ends with the run
		t.Cleanup(func() { m.script(t, "down") })
	}
	m.script(t, "up")
	return m
}

// staged has a *sync.Once for each staged thing.
var staged sync.Map

// stage builds the files for a machine, once, and returns their directory.
func stage(t *testing.T, what string) string {
	t.Helper()
	once, _ := staged.LoadOrStore(what, new(sync.Once))
	once.(*sync.Once).Do(func() {
		if out, err := exec.Command("../../scripts/test-vm", "--stage", what).CombinedOutput(); err != nil {
			t.Errorf("stage %s: %v\n%s", what, err, out)
		}
	})
	dir := filepath.Join(os.Getenv(stageEnv), what)
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (m *machine) arch() string {
	if strings.HasPrefix(m.name, "arm64") {
		return "arm64"
	}
	return "amd64"
}

// vm returns a call of scripts/vm.
func (m *machine) vm(args ...string) *exec.Cmd {
	cmd := exec.Command(vmScript, args...)
	cmd.Env = append(os.Environ(), m.env...)
	return cmd
}

func (m *machine) script(t *testing.T, args ...string) {
	t.Helper()
	cmd := m.vm(args...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: vm %s: %v\n%s", m.name, strings.Join(args, " "), err, out)
	}
	t.Logf("%s: vm %s: %.1f s", m.name, args[0], time.Since(start).Seconds())
}

// cut cuts the power and boots from the disk.
func (m *machine) cut(t *testing.T) {
	t.Helper()
	m.script(t, "cut")
	m.script(t, "up")
}

// command returns a command on the machine, in a place of scripts/vm: scope, service, session, su
// or root.
func (m *machine) command(kind string, args ...string) *exec.Cmd {
	return m.vm(append([]string{"exec", "-" + kind}, args...)...)
}

// must runs a command that must succeed, and returns its standard output.
func (m *machine) must(t *testing.T, kind string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := m.command(kind, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %s %s: %v\n%s%s", m.name, kind, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

// nothingLeft fails t if anything of a pod stays for long: processes, cgroups, files, mounts,
// units.
func (m *machine) nothingLeft(t *testing.T) {
	t.Helper()
	var found string
	if !scriptcmd.Poll(func() bool { found = m.must(t, "root", home+"/left"); return found == "" }) {
		t.Errorf("left behind in %s:\n%s", m.name, found)
	}
}

// sweep removes what a failed test has left, before the next test.
func (m *machine) sweep(t *testing.T) {
	t.Helper()
	m.must(t, "root", home+"/left", "--sweep")
}
