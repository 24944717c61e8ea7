// Command quick is the front for what has to be quick: `podrun exec`, `logs`, `ps`, `down` and `stop`,
// in a program without Kubernetes' types, registries and flags, which starts in a quarter of the time.
// The podrun binary carries it and executes it before its own Go begins (internal/stage/hasten).
//
// It knows the plain form of a command only. Whatever else it meets, wrong words and pods that
// are not there included, it leaves to the whole front, in its own place and with the same
// words: so there is one command line, one help and one place for what is said of errors.
// It has said nothing then, and done nothing that the whole front would not do first.
package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// Exit codes, as in cli/exit.go.
const (
	exitFailure  = 1
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
	if err := execCLI(); err != nil {
		report.Print(os.Stderr, err)
		os.Exit(exitInternal)
	}
}

// run does what the words ask for. It is not ok if that is for the whole front; then nothing
// has been said, and nothing done but, for down, that a pod was stopped: see errRemains.
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

// recorded is the place of a pod that is on record, and its plan.
func recorded(namespace, name string) (store.Pod, *pod.Plan, error) {
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil {
		return store.Pod{}, nil, err
	}
	place := dirs.Pod(namespace, name)
	plan, err := place.Plan()
	return place, plan, err
}

// ended is the code of a command that has come to an end, and says its error.
func ended(err error) int {
	if err == nil {
		return 0
	}
	report.Print(os.Stderr, err)
	if no := (*exitcode.Refused)(nil); errors.As(err, &no) {
		return no.Code
	}
	switch report.ClassOf(err) {
	case report.Usage:
		return exitUsage
	case report.Internal:
		return exitInternal
	}
	return exitFailure
}

// frontEnv is the descriptor of the whole front's program: see internal/stage/hasten.
const frontEnv = "_PODRUN_CLI"

// closeFront keeps the descriptor from the programs that this one executes: none but the
// whole front, which is executed by its name.
func closeFront() {
	if fd, err := strconv.Atoi(os.Getenv(frontEnv)); err == nil {
		unix.CloseOnExec(fd)
	}
}

// execCLI executes the whole front with the same words. It returns on failure only.
func execCLI() error {
	program := "/proc/self/fd/" + os.Getenv(frontEnv)
	err := unix.Exec(program, os.Args, os.Environ())
	return report.New(report.Internal, "", "execute the whole of podrun, %s: %w", program, err)
}
