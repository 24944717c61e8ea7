package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/hostdeps"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/nsprobe"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// EntryPoints returns the re-exec entry points of the packages that only the CLI links.
func EntryPoints() map[string]func(args []string) int {
	entryPoints := image.EntryPoints()
	maps.Copy(entryPoints, nsprobe.EntryPoints())
	entryPoints[protocol.EntryController] = controller.Main
	entryPoints[protocol.EntryReplacer] = replacerEntry
	entryPoints[protocol.EntryPuller] = pullerEntry
	return entryPoints
}

// pullerEntry pulls the images of one pod, and starts it, so that `podrun up -d` and `podrun apply` need
// not wait for that. It has the pod's lock.
func pullerEntry(args []string) int {
	env := cmdutil.New(os.Getenv, hostdeps.Deps{}, strings.NewReader(""), io.Discard, os.Stderr)
	return exitcode.Report(env.ErrOut, runPuller(env, args))
}

func runPuller(env *cmdutil.Env, args []string) error {
	if len(args) != 5 {
		return report.New(report.Internal, "", "a puller requires five arguments")
	}
	inherited, err := store.InheritedFileLock(protocol.FDLock)
	if err != nil {
		return report.New(report.Internal, "podrun up starts pullers", "a puller requires its lock: %w", err)
	}
	lock := inherited.File() // PullPod passes it to the pod
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	p := dirs.Pod(args[2], args[3])
	if pid, started, err := reexec.StartDetachedPuller(dirs, p, args[4], lock); started || err != nil {
		if err == nil {
			hostdeps.StartScope(systemd.Scope{Name: "podrun-pull-" + p.Namespace + "-" + p.Name, Description: "podrun: pull for pod " + p.Namespace + "/" + p.Name, PID: pid, Stop: hostdeps.ScopeStopMargin})
		}
		return err
	}
	var options cmdutil.PullerOptions
	if err := json.Unmarshal([]byte(args[4]), &options); err != nil {
		return fmt.Errorf("read how to pull: %w", err)
	}
	return podup.PullPod(context.Background(), env, dirs, p, options, lock)
}

// replacerEntry is the process that replaces a pod.
func replacerEntry(args []string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT) // the reader of its output may be gone
	env := cmdutil.New(os.Getenv, hostdeps.Deps{}, os.Stdin, os.Stdout, os.Stderr)
	return exitcode.Report(env.ErrOut, runReplacer(env, args))
}

func runReplacer(env *cmdutil.Env, args []string) error {
	if len(args) != 4 {
		return report.New(report.Internal, "", "a replacer requires four arguments")
	}
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	lock, err := store.InheritedFileLock(protocol.FDLock)
	if err != nil {
		return err
	}
	defer lock.Close() // not before: without a reference to it, the garbage collector would release it
	return podup.FinishReplacement(context.Background(), env, dirs, dirs.Pod(args[2], args[3]), lock)
}
