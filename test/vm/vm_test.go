// Package vm runs the built binary on real hosts: emulated machines with systemd, delegated cgroups
// and an ordinary user, or without one of these. Every testdata/MACHINE/*.txtar is a list of
// commands on such a machine with their expected output; tests with loops are in Go.
// scripts/test-vm builds their programs and runs them. See README.md.
package vm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/testenv"
)

const (
	stageEnv   = "PODRUN_VM_STAGE" // where scripts/test-vm puts its builds
	keepEnv    = "KEEP"            // set: the machines stay up for the next run
	tortureEnv = "PODRUN_TORTURE"  // number of repetitions (make torture-vm)
	namesEnv   = "VM_NAMES"        // prefix of the names of this run's machines
	guestEnv   = "GUEST"           // in a script: its directory on the machine
	scriptEnv  = "VM_SCRIPT"       // in a script: vmScript, from anywhere
	vmScript   = "../../scripts/vm"
)

// sessionKinds are the commands of a script that run on the machine.
var sessionKinds = []string{"scope", "service", "session", "su", "root"}

func TestMain(m *testing.M) {
	commands := map[string]func(){}
	for _, p := range sessionKinds {
		commands[p] = func() { os.Exit(runInSession(p)) }
	}
	testscript.Main(m, commands)
}

// runInSession runs the rest of the command line on the machine, in the script's directory.
func runInSession(kind string) int {
	args := []string{os.Getenv(scriptEnv), "exec", "-" + kind, "env", "-C", os.Getenv(guestEnv),
		"PATH=" + home + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd := exec.Command(args[0], append(args[1:], os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	return cmd.ProcessState.ExitCode()
}

// machines are the machines of scripts/vm with the directories of their scripts; moreInTorture are
// directories that only make torture-vm runs there.
var machines = map[string][]string{
	"debian":       {"everywhere", "units", "debian"},
	"small":        {"everywhere"},
	"arm64":        {"everywhere", "arm64"},
	"nomemory":     {"nomemory"},
	"nodelegation": {"nodelegation"},
	"nosubids":     {"nosubids"},
}

var moreInTorture = map[string][]string{"arm64": {"units"}, "debian": {"firewalls"}}

// TestMachines runs the scripts of each machine, one after the other.
func TestMachines(t *testing.T) {
	needMachines(t)
	t.Parallel()
	for name, dirs := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := boot(t, name)
			if torture() {
				dirs = slices.Concat(dirs, moreInTorture[name])
			}
			m.run(t, scripts(t, dirs))
		})
	}
}

// smoke are the scripts of TestSmoke.
var smoke = []string{"testdata/everywhere/limits.txtar", "testdata/everywhere/oom.txtar", "testdata/smoke/unit.txtar"}

// TestSmoke runs on one machine what every change has to pass: limits, OOM, a unit, a power cut of
// a pull, a reboot. TestMachines and TestImagePowerCuts test the same in more detail.
func TestSmoke(t *testing.T) {
	needMachines(t)
	m := boot(t, "debian")
	m.run(t, smoke)
}

// run runs scripts on the machine, one after the other.
func (m *machine) run(t *testing.T, scripts []string) {
	testscript.RunT(machineRunner{t, m}, testscript.Params{
		Files:              scripts,
		Cmds:               commands(m),
		Setup:              m.setUp,
		RequireUniqueNames: true,
	})
}

func scripts(t *testing.T, dirs []string) []string {
	t.Helper()
	var all []string
	for _, d := range dirs {
		files, err := filepath.Glob("testdata/" + d + "/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("there are no scripts in testdata/%s: %v", d, err)
		}
		all = append(all, files...)
	}
	return all
}

// TestEveryScriptHasAMachine: every script runs on some machine.
func TestEveryScriptHasAMachine(t *testing.T) {
	run := slices.Concat(slices.Concat(slices.Collect(maps.Values(machines))...), slices.Concat(slices.Collect(maps.Values(moreInTorture))...))
	run = append(run, "release") // TestRelease
	for _, script := range smoke {
		run = append(run, filepath.Base(filepath.Dir(script)))
	}
	there, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range there {
		if !slices.Contains(run, filepath.Base(dir)) {
			t.Errorf("no machine runs the scripts of %s: see machines", dir)
		}
	}
}

// needMachines skips t unless scripts/test-vm has prepared its files.
func needMachines(t *testing.T) {
	t.Helper()
	testenv.NeedVM(t, func() error {
		if os.Getenv(stageEnv) == "" {
			return errors.New("emulated machines: scripts/test-vm makes them")
		}
		return nil
	})
}

// machineRunner runs the scripts of a machine one after the other, each on a clean one.
type machineRunner struct {
	*testing.T
	m *machine
}

func (o machineRunner) Parallel()     {}
func (o machineRunner) Verbose() bool { return false } // print the log of failing scripts only
func (o machineRunner) Run(name string, script func(testscript.T)) {
	o.T.Run(name, func(t *testing.T) {
		start := time.Now()
		defer func() {
			t.Logf("%s: %.0f s", o.m.name, time.Since(start).Seconds())
			if !t.Failed() {
				o.m.nothingLeft(t)
			}
			if t.Failed() {
				o.m.sweep(t)
			}
		}()
		script(machineRunner{t, o.m})
	})
}
