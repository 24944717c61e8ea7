// Command quick is the front for what has to be quick: `podrun exec`, in a program without
// Kubernetes' types, registries and flags, which starts in a quarter of the time. The podrun
// binary carries it and executes it before its own Go begins (internal/stage/hasten).
//
// It knows the plain form of a command only. Whatever else it meets, wrong words and pods that
// are not there included, it leaves to the whole front, in its own place, as if it had never
// been: so there is one command line, one help and one place for what is said of errors.
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Exit codes, as in cli/exit.go.
const (
	exitUsage    = 2
	exitInternal = 125
	exitSignal   = 128 // and the signal's number
)

func main() {
	closeFront()
	code, ok := run(os.Args[1:])
	if ok {
		os.Exit(code)
	}
	if err := wholeFront(); err != nil {
		report.Print(os.Stderr, err)
		os.Exit(exitInternal)
	}
}

// run does what the words ask for. It is not ok if that is for the whole front; then
// nothing has been done.
func run(words []string) (code int, ok bool) {
	o, ok := parse(words)
	if !ok {
		return 0, false
	}
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil {
		return 0, false
	}
	place := dirs.Pod(o.namespace, o.pod)
	plan, err := place.Plan()
	if err != nil || !place.Alive() {
		return 0, false
	}
	if _, known := plan.Container(o.container); o.container != "" && !known {
		return 0, false
	}
	container, err := remote.Choose(os.Stderr, place, plan, o.container)
	if err != nil {
		return codeOf(0, err), true
	}
	c := &remote.Command{
		Pod: place, Container: container.Name, Stdin: o.stdin,
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: remote.Signals,
	}
	code, err = c.Run(context.Background(), wire.ExecRequest{Container: container.Name, Args: o.command})
	if errors.Is(err, remote.ErrNotRunning) {
		err = report.New(report.Internal, "podrun ps shows its state", "cannot exec in pod %q: it is not running", place.Name)
	}
	return codeOf(code, err), true
}

// codeOf says an error, and is the code to exit with.
func codeOf(code int, err error) int {
	if err == nil {
		return code
	}
	var sig *remote.Interrupted
	if errors.As(err, &sig) {
		if number, is := sig.Signal.(syscall.Signal); is {
			return exitSignal + int(number)
		}
	}
	report.Print(os.Stderr, err)
	var refused *remote.Refused
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case report.ClassOf(err) == report.Usage:
		return exitUsage
	}
	return exitInternal
}

// frontEnv is the descriptor of the whole front's program: see internal/stage/hasten.
const frontEnv = "_PODRUN_FRONT"

// closeFront keeps the descriptor from the programs that this one executes: none but the
// whole front, which is executed by its name.
func closeFront() {
	if fd, err := strconv.Atoi(os.Getenv(frontEnv)); err == nil {
		unix.CloseOnExec(fd)
	}
}

// wholeFront executes the whole front with the same words. It returns on failure only.
func wholeFront() error {
	program := "/proc/self/fd/" + os.Getenv(frontEnv)
	err := unix.Exec(program, os.Args, os.Environ())
	return report.New(report.Internal, "", "execute the whole of podrun, %s: %w", program, err)
}
