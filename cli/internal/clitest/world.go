package clitest

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// Timeout is how long anything may take in these tests.
const Timeout = time.Minute

// World is a machine on which commands run: real directories, a fake image store
// and fake supervisors that serve real sockets.
type World struct {
	T         *testing.T
	Env       map[string]string
	Dirs      store.Dirs
	Findings  []host.Finding
	TryErr    error
	Hangs     chan struct{} // if not nil, examine closes it and waits to be ended
	ImageErr  error
	ImageErrs []error           // of the first images that are asked for, instead
	ensured   int               // how often an image was asked for
	Pruned    image.Pruned      // what a disk that is nearly full has lost
	Policies  map[string]string // by which an image was asked for last
	Still     time.Duration     // after which is told what is waited for; 0: it is not
	Script    func(*Supervisor) // what a started pod does
	StartErr  error
	Logins    map[string][]string // with which images were asked for

	pullers sync.WaitGroup
	said    Buffer // by pullers

	Mu      sync.Mutex
	running map[string]*Supervisor
}

// NewWorld returns a machine without pods, which ends with the test.
func NewWorld(t *testing.T) *World {
	t.Helper()
	base := t.TempDir()
	w := &World{T: t, running: map[string]*Supervisor{}}
	w.Env = map[string]string{"HOME": base, "XDG_DATA_HOME": base + "/data", "XDG_RUNTIME_DIR": base + "/run", "TERM": "xterm"}
	w.Dirs = store.Dirs{Data: base + "/data/podrun", Runtime: base + "/run/podrun"}
	if os.Getuid() == 0 {
		// Root's directories are fixed: tests must not touch the machine's.
		t.Fatal("these tests run as an ordinary user: see TestMain")
	}
	t.Cleanup(func() {
		w.pullers.Wait()
		w.Mu.Lock()
		defer w.Mu.Unlock()
		for _, s := range w.running {
			s.Kill()
		}
		if t.Failed() {
			t.Log(w.said.String())
		}
	})
	return w
}

// PodIDs is cmdutil.Deps.PodIDs.
func (w *World) PodIDs() host.IDs {
	return host.IDs{Users: 65537, Groups: 65537, Cure: "ask for more ids"}
}

// CheckHugePages allows all.
func (w *World) CheckHugePages(map[string]int64) error { return nil }

// SecurityModules returns none.
func (w *World) SecurityModules() (host.AppArmor, host.SELinux) {
	return host.AppArmor{}, host.SELinux{}
}

// CheckHost returns the test's findings.
func (w *World) CheckHost(host.Setup) []host.Finding { return w.Findings }

// DiagnoseHost returns the test's findings, or hangs.
func (w *World) DiagnoseHost(ctx context.Context, _ host.Setup) []host.Finding {
	if w.Hangs != nil {
		close(w.Hangs)
		<-ctx.Done()
	}
	return w.Findings
}

// TryPod returns the test's error.
func (w *World) TryPod(context.Context, store.Dirs) error { return w.TryErr }

// Prespawn starts nothing.
func (w *World) Prespawn(store.Dirs) *podinit.Prespawn { return nil }

// OpenImages returns the fake store.
func (w *World) OpenImages(store.Dirs) (cmdutil.ImageStore, error) { return w, nil }

// NewLauncher returns the fake launcher.
func (w *World) NewLauncher(store.Dirs) (cmdutil.PodLauncher, error) { return w, nil }

// ReplaceInBackground replaces the pod in this process.
func (w *World) ReplaceInBackground(_ store.Dirs, _ store.Pod, _ *store.FileLock, _ io.Writer, here func() error) error {
	return here()
}

// GarbageCollect returns what the test has set.
func (w *World) GarbageCollect(func() (image.Uses, error)) (image.Pruned, error) {
	return w.Pruned, nil
}

// Lease holds nothing.
func (w *World) Lease() (io.Closer, error) { return io.NopCloser(strings.NewReader("")), nil }

// Remove removes the files of a pod.
func (w *World) Remove(p store.Pod) error { return p.Remove() }

// RemoveClaim removes the directory of a claim.
func (w *World) RemoveClaim(namespace, name string) error {
	dir, err := w.Dirs.ClaimDir(namespace, name)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	return err
}

// Supervisor returns the fake supervisor of a pod, or nil.
func (w *World) Supervisor(namespace, name string) *Supervisor {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.running[namespace+"/"+name]
}

// Ensure returns an image, or the test's error.
func (w *World) Ensure(_ context.Context, ref, policy string, o image.PullOptions) (pod.Image, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if o.LocalOnly && (len(w.ImageErrs) > 0 || w.ImageErr != nil) {
		return pod.Image{}, image.ErrRegistryNeeded
	}
	w.ensured++
	if w.Policies == nil {
		w.Policies = map[string]string{}
	}
	w.Policies[ref] = policy
	if len(w.ImageErrs) > 0 {
		err := w.ImageErrs[0]
		w.ImageErrs = w.ImageErrs[1:]
		return pod.Image{}, err
	}
	for _, text := range o.AuthFiles {
		w.Logins[ref] = append(w.Logins[ref], string(text))
	}
	return pod.Image{Name: ref, ID: "sha256:" + strings.Repeat("0", 64), Layers: []string{"/layer"}, Cmd: []string{"sh"}}, w.ImageErr
}

// StartPuller is a puller in this process.
func (w *World) StartPuller(dirs store.Dirs, p store.Pod, options cmdutil.PullerOptions, lock *os.File) error {
	own, err := podup.Dup(lock)
	if err != nil {
		return err
	}
	f := &cmdutil.Env{Getenv: func(string) string { return "" }, In: strings.NewReader(""), Out: io.Discard, ErrOut: &w.said, Deps: w, PullBackOff: w.backOff}
	w.pullers.Go(func() {
		if err := podup.PullPod(w.T.Context(), f, dirs, p, options, own); err != nil {
			w.T.Errorf("the puller of pod %s: %v", p.Name, err)
		}
	})
	return nil
}

// Asked is how often an image was asked for.
func (w *World) Asked() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.ensured
}

// BackOff is longer than a test: no second attempt is made before a client asks for it.
func (w *World) backOff(int) time.Duration { return time.Hour }

// Start starts a fake supervisor.
func (w *World) Start(p store.Pod, plan *pod.Plan, with cmdutil.StartOptions) (string, error) {
	if with.Record != nil {
		if err := with.Record(); err != nil {
			return "", err
		}
	}
	return "", w.startSupervisor(p, plan, with.Lock)
}

func (w *World) startSupervisor(p store.Pod, plan *pod.Plan, lock *os.File) error {
	if w.StartErr != nil {
		return w.StartErr
	}
	fd, err := unix.FcntlInt(lock.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	s := &Supervisor{
		t: w.T, Pod: p, Plan: plan, lock: os.NewFile(uintptr(fd), "lock"),
		Stops: make(chan *int64, 8), ended: make(chan struct{}), changed: make(chan struct{}),
		Exec: func(c *ExecClient) { c.Fail("no exec here", 125) },
	}
	if s.Listener, err = p.Listen(); err != nil {
		return err
	}
	w.Mu.Lock()
	w.running[p.Namespace+"/"+p.Name] = s
	w.Mu.Unlock()
	go s.serve()
	if w.Script != nil {
		go w.Script(s)
	}
	return nil
}

// UpDetached starts a pod whose supervisor the test then drives itself.
func (w *World) UpDetached(manifest string, before func(*Supervisor)) *Supervisor {
	w.T.Helper()
	w.Script = func(s *Supervisor) {
		if before != nil {
			before(s)
		}
		s.Publish(Status(pod.Running, RunningContainer("app")))
	}
	if got := w.Run("up", "-d", w.File(manifest)); got.Code != 0 {
		w.T.Fatalf("%+v", got)
	}
	return w.Supervisor("default", "web")
}

// File writes a manifest and returns its path.
func (w *World) File(text string) string {
	w.T.Helper()
	f, err := os.CreateTemp(w.T.TempDir(), "*.yaml")
	if err != nil {
		w.T.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		w.T.Fatal(err)
	}
	return f.Name()
}
