// Package reexec runs podrun's hidden re-exec entry points: the program executes itself to do one
// thing inside namespaces that a Go process cannot enter by itself.
//
// The first argument names an entry point; it starts with an underscore. The C constructor of
// reexec/nsenter enters the namespaces before Go starts.
package reexec

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/podrun/podrun/internal/protocol"
	_ "github.com/podrun/podrun/internal/reexec/nsenter"
	"github.com/podrun/podrun/internal/store"
)

// Keep the supervisor's main goroutine on the main thread, so that a goroutine that enters a
// container's namespaces never runs on the thread that /proc/self describes.
func init() {
	if len(os.Args) > 1 && os.Args[1] == protocol.EntrySupervisor {
		runtime.LockOSThread()
	}
}

// Main runs the entry point that this process was started for and does not return. It returns if
// the process was started for none. An entry point returns its exit code.
func Main(entryPoints map[string]func(args []string) int) {
	if len(os.Args) < 2 {
		return
	}
	if run, ok := entryPoints[os.Args[1]]; ok {
		os.Exit(run(os.Args[2:]))
	}
}

// Spec describes a run of an entry point.
type Spec struct {
	Name       string   // protocol.Entry…
	Args       []string // its arguments
	Program    string   // the program with the entry point; this one if empty
	Userns     bool     // in a user namespace of the caller's ids (none as root) and a mount namespace
	Net        bool     // with Userns: in an empty network namespace, too
	ExtraFiles []*os.File
}

// Command prepares a program, usually this one, to run an entry point. If there is no id map, the
// command's Start reports that.
func Command(s Spec) *exec.Cmd {
	program := s.Program
	if program == "" {
		program = "/proc/self/exe"
	}
	cmd := exec.Command(program, append([]string{s.Name}, s.Args...)...)
	cmd.Args[0] = "podrun"
	cmd.ExtraFiles = s.ExtraFiles
	if s.Userns {
		enter := protocol.EnterUserNS
		if s.Net {
			enter = protocol.EnterUserNSNet
		}
		cmd.Env = append(Environ(), EnterEnv(enter)...)
	}
	return cmd
}

// PassFile makes a command inherit a file and returns the descriptor there.
func PassFile(cmd *exec.Cmd, f *os.File) int {
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return 2 + len(cmd.ExtraFiles) // after the standard streams
}

// PassFileEnv is PassFile with the descriptor in a variable.
func PassFileEnv(cmd *exec.Cmd, name string, f *os.File) {
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", name, PassFile(cmd, f)))
}

// PodArgs returns the arguments of an entry point that works on one pod.
func PodArgs(d store.Dirs, p store.Pod) []string {
	return []string{d.Data, d.Runtime, p.Namespace, p.Name}
}
