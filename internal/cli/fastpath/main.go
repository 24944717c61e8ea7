// Command fastpath is the fast path: it runs `podrun exec`, `logs`, `ps`, `get pods`, `down` and `stop` in a
// program without Kubernetes' types, registries and flags, which starts in a quarter of the time. The podrun
// binary contains it and executes it before its own Go code starts (internal/reexec/fastpath).
//
// It handles only the plain form of a command. For everything else, including wrong arguments and missing
// pods, it executes the CLI in the same process with the same arguments. So there is a single command
// line, help and set of error messages. Before that it has printed nothing, and done nothing that the CLI
// would not do first.
package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func main() {
	closeCLI()
	code, ok := run(os.Args[1:])
	if ok {
		os.Exit(code)
	}
	if err := execCLI(); err != nil {
		report.Print(os.Stderr, err)
		os.Exit(exitcode.Internal)
	}
}

// run runs the command of words. If ok is false, the CLI has to run it; then nothing was printed, and
// nothing done except that down may have stopped a pod: see errRemains.
func run(words []string) (code int, ok bool) {
	if len(words) == 0 {
		return 0, false
	}
	switch words[0] {
	case "exec":
		return execIn(words[1:])
	case "logs":
		return logs(words[1:])
	case "ps", "get":
		return list(words[0], words[1:])
	case "down":
		return down(words[1:])
	case "stop":
		return stop(words[1:])
	}
	return 0, false
}

// errLookAfter means that the CLI has to restart a controller or to take up the pod first.
var errLookAfter = errors.New("a controller was killed, or the pod has lost its runtime directory")

// recorded returns a recorded pod and its Plan.
func recorded(namespace, name string) (store.Pod, *pod.Plan, error) {
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil {
		return store.Pod{}, nil, err
	}
	p := dirs.Pod(namespace, name)
	if lost(p) || uncontrolled(dirs) {
		return store.Pod{}, nil, errLookAfter
	}
	plan, err := p.Plan()
	return p, plan, err
}

// reportError prints a command's error, and returns its exit code.
func reportError(err error) int { return exitcode.Report(os.Stderr, err) }

// closeCLI keeps the descriptor from other programs that this one executes. The CLI is executed by the
// descriptor's path.
func closeCLI() {
	if fd, err := strconv.Atoi(os.Getenv(protocol.EnvCLI)); err == nil {
		unix.CloseOnExec(fd)
	}
}

// execCLI executes the CLI with the same arguments. It returns only on failure.
func execCLI() error {
	program := "/proc/self/fd/" + os.Getenv(protocol.EnvCLI)
	err := unix.Exec(program, os.Args, os.Environ())
	return report.New(report.Internal, "", "execute the CLI %s: %w", program, err)
}
