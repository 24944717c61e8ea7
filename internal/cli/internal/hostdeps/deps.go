// Package hostdeps implements cmdutil.Deps on the real host: probes, images, and the processes of
// pods.
package hostdeps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/nsprobe"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// Deps uses the real host.
type Deps struct{}

// CheckHost runs the quick probes.
func (Deps) CheckHost(s host.Setup) []host.Finding {
	s.Timeout = probeTime
	return host.Check(s)
}

// TryPod returns an error, before anything of a pod exists, if the data directory cannot hold root file
// systems of pods or the kernel does not allow them. A success is valid until the next boot; the
// supervisor reads the same marker file.
func (Deps) TryPod(ctx context.Context, dirs store.Dirs) error {
	mark, err := dirs.OverlayMark()
	if err != nil {
		return err
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// After a boot all units start at once: one tries, the others wait for its result.
	lock, err := store.LockExclusive(mark + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	findings := nsprobe.Run(ctx, dirs.Data)
	if err := host.FirstFailure(findings); err != nil {
		return err
	}
	if f, _ := host.FindByName(findings, host.Overlay); f.Level != host.OK {
		return nil // the supervisor will try it itself
	}
	return store.WriteVolatile(mark, nil)
}

// RunReplacer runs the replacer process and waits for its end. The process writes its output to out. Only
// the fake of tests uses the last parameter, see cmdutil.Deps.
func (Deps) RunReplacer(dirs store.Dirs, p store.Pod, lock *store.FileLock, out io.Writer, _ func() error) error {
	err := reexec.ReplacerCommand(dirs, p, lock, out).Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return &exitcode.Error{Code: exit.ExitCode()} // it has printed the reason
	}
	if err != nil {
		return fmt.Errorf("replace pod %s: %w", p.Name, err)
	}
	return nil
}

// StartFirst starts a pod's first process, if podrun has run before and its directories are such that no
// other user could have written to them.
func (Deps) StartFirst(dirs store.Dirs) *podinit.First {
	program, ok := programs.FindPodProgram(dirs)
	if !ok || errors.Join(store.Trusted(dirs.Data), store.Trusted(dirs.Runtime)) != nil {
		return nil
	}
	return podinit.StartFirst(program, dirs)
}

// PodIDs returns the user and group IDs that pods can have.
func (Deps) PodIDs() host.IDs { return host.FindIDs() }

// CheckHugePages returns why a pod cannot have so many bytes of each page size, or nil.
func (Deps) CheckHugePages(need map[string]int64) error { return host.HugePages(need) }

// SecurityModules returns the kernel's security modules.
func (Deps) SecurityModules() (host.AppArmor, host.SELinux) {
	return host.FindAppArmor(), host.FindSELinux()
}

// OpenImages opens the image store.
func (Deps) OpenImages(dirs store.Dirs) (cmdutil.ImageStore, error) { return cmdutil.OpenImages(dirs) }

// NewLauncher returns the launcher of pods, after unpacking the supervisor program.
func (Deps) NewLauncher(dirs store.Dirs) (cmdutil.PodLauncher, error) {
	shown := progress.New(&cmdutil.Env{ErrOut: os.Stderr, Getenv: os.Getenv}, "")
	defer shown.End()
	shown.Wait("unpacking the supervisor")
	unpacked, err := programs.Programs(dirs)
	return &launcher{dirs, unpacked}, err
}

// StartPuller starts a process that pulls the images of a pod, and passes it the pod's lock.
func (Deps) StartPuller(dirs store.Dirs, p store.Pod, options cmdutil.PullerOptions, lock *os.File) error {
	text, err := json.Marshal(options)
	if err != nil {
		return fmt.Errorf("encode how to pull: %w", err)
	}
	return reexec.StartPuller(dirs, p, string(text), lock)
}
