// Package reexec runs podrun's hidden stages: the program is re-executed to do one
// thing inside namespaces that a Go process cannot enter by itself.
//
// A stage is named by its first argument, which starts with an underscore. The
// namespaces are entered by the C constructor of reexec/nsenter before Go starts.
package reexec

import (
	"os"
	"os/exec"
	"runtime"
	"strings"

	_ "github.com/podrun/podrun/internal/reexec/nsenter"
	"github.com/podrun/podrun/internal/store"
)

// The supervisor's main goroutine stays on the main thread, so that no goroutine
// that enters a container's namespaces takes the thread /proc/self speaks of.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Supervisor {
		runtime.LockOSThread()
	}
}

// Main runs the stage that this process was started for and does not return, or
// returns if it was started for none. A stage returns its exit code.
func Main(stages map[string]func(args []string) int) {
	if len(os.Args) < 2 {
		return
	}
	if run, ok := stages[os.Args[1]]; ok {
		os.Exit(run(os.Args[2:]))
	}
}

// Names of the stages that the front starts and the supervisor's program runs.
const (
	Supervisor  = "_supervisor"   // runs a pod to its end: Start
	RemoveFiles = "_remove-files" // removes a dead pod's files: RemovePod
	RemoveWhole = "_remove-pod"   // removes the whole of a dead pod; its guard executes it: nsenter/monitor.c

	RemoveVolume = "_remove-volume" // removes the directory of a claim: RemoveClaim
)

// Spec names a stage and where it is to run.
type Spec struct {
	Name       string   // "_unpack"
	Args       []string // its arguments
	Program    string   // whose stage it is; this program's if empty
	Userns     bool     // in a user namespace of the caller's ids (none as root) and a mount namespace
	Net        bool     // with Userns: in an empty network namespace too
	ExtraFiles []*os.File
}

// Command prepares a program, mostly this one, to run as a stage. An id map that
// cannot be had is reported by the command's Start.
func Command(s Spec) *exec.Cmd {
	program := s.Program
	if program == "" {
		program = "/proc/self/exe"
	}
	cmd := exec.Command(program, append([]string{s.Name}, s.Args...)...)
	cmd.Args[0] = "podrun"
	cmd.ExtraFiles = s.ExtraFiles
	if s.Userns {
		enter := []string{"userns"}
		if s.Net {
			enter = append(enter, "net")
		}
		cmd.Env = append(Environ(), EnterEnv(strings.Join(enter, ","))...)
	}
	return cmd
}

// PodArgs are the arguments of a stage that works on one pod.
func PodArgs(d store.Dirs, p store.Pod) []string {
	return []string{d.Data, d.Runtime, p.Namespace, p.Name}
}
