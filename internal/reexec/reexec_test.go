package reexec

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/protocol"
)

// TestIDMap: 0 is the user, and the subordinate ranges follow without a gap.
func TestIDMap(t *testing.T) {
	for want, ranges := range map[string][]host.Range{
		"0 1000 1":                nil,
		"0 1000 1 1 100000 65536": {{First: 100000, Count: 65536}},
		"0 1000 1 1 100000 10 11 300000 5 16 7 1": {{First: 100000, Count: 10}, {First: 300000, Count: 5}, {First: 7, Count: 1}},
	} {
		if got := idMap(1000, ranges); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEnviron: a child inherits no instruction that the user has set.
func TestEnviron(t *testing.T) {
	t.Setenv(protocol.EnvEnter, "userns")
	t.Setenv("_LIBCONTAINER_INITTYPE", "standard")
	t.Setenv("PODRUN_KEPT", "yes")
	env := Environ()
	if slices.ContainsFunc(env, func(v string) bool {
		return strings.HasPrefix(v, protocol.EnvEnter) || strings.HasPrefix(v, "_LIBCONTAINER_")
	}) {
		t.Errorf("instructions are inherited: %v", env)
	}
	if !slices.Contains(env, "PODRUN_KEPT=yes") {
		t.Error("another variable is lost")
	}
	got := WithoutSystemd([]string{"NOTIFY_SOCKET=/run/x", "PATH=/bin", "LISTEN_FDS=1", "MAINPID=7", "MAINPIDS=7"})
	if want := []string{"PATH=/bin", "MAINPIDS=7"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPassFile: the descriptors follow the standard streams.
func TestPassFile(t *testing.T) {
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/bin/true")
	if first, second := PassFile(cmd, file), PassFile(cmd, file); first != 3 || second != 4 {
		t.Errorf("descriptors %d, %d", first, second)
	}
	PassFileEnv(cmd, "_X", file)
	if !slices.Equal(cmd.Env, []string{"_X=5"}) || len(cmd.ExtraFiles) != 3 {
		t.Errorf("%v, %d files", cmd.Env, len(cmd.ExtraFiles))
	}
}

// TestCommand: an entry point runs in this program, or in another that has it.
func TestCommand(t *testing.T) {
	for want, spec := range map[string]Spec{
		"/proc/self/exe": {Name: "_load", Args: []string{"a"}},
		"/libexec/x":     {Name: "_load", Args: []string{"a"}, Program: "/libexec/x"},
	} {
		if cmd := Command(spec); cmd.Path != want || !slices.Equal(cmd.Args, []string{"podrun", "_load", "a"}) || cmd.Env != nil {
			t.Errorf("%s %v, environment %v", cmd.Path, cmd.Args, cmd.Env)
		}
	}
	if cmd := Command(Spec{Name: "_x", Userns: true, Net: true}); !slices.Contains(cmd.Env, protocol.EnvEnter+"="+protocol.EnterUserNSNet) {
		t.Errorf("the constructor is told %v", cmd.Env)
	}
}

// TestUnitLoopTakesSignals: the program that is executed as the unit loop starts with the signals blocked that end it.
func TestUnitLoopTakesSignals(t *testing.T) {
	if os.Getenv("PODRUN_TEST_EXEC") != "" {
		os.Args = []string{"sed", "-n", "s/SigBlk:\t//p", "/proc/self/status"}
		t.Fatal(UnitLoop{Program: "/bin/sed", Output: -1}.Exec(os.Environ()))
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnitLoopTakesSignals$")
	cmd.Env = append(os.Environ(), "PODRUN_TEST_EXEC=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	blocked, err := strconv.ParseUint(strings.TrimSpace(string(out)), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if blocked&(1<<(s-1)) == 0 {
			t.Errorf("%v is not blocked: the mask is %x", s, blocked)
		}
	}
}
