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

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// Timeout is how long anything may take in these tests.
const Timeout = time.Minute

// Host is a fake host on which commands run: real directories, a fake image store, and fake supervisors
// that serve real sockets.
type Host struct {
	T             *testing.T
	Env           map[string]string
	Dirs          store.Dirs
	Findings      []host.Finding
	TryErr        error
	Hangs         chan struct{} // if not nil, DiagnoseHost closes it and waits for the end of its context
	ImageErr      error
	ImageErrs     []error           // of the first requests, instead of ImageErr
	pulls         int               // number of requests
	Pruned        image.Pruned      // the result of GarbageCollect
	Policies      map[string]string // by image; of the last request
	WaitHintAfter time.Duration     // cmdutil.Env.WaitHintAfter; 0: an hour
	GoneTime      time.Duration     // cmdutil.Env.GoneTime; 0: podclient.GoneTime
	Script        func(*Supervisor) // run with each started supervisor
	StartErr      error
	ResizeErr     error               // of ResizeScope
	Resized       [][2]int64          // calls of ResizeScope
	Logins        map[string][]string // auth files of the requests, by image

	pullers      sync.WaitGroup
	pullerOutput Buffer // of pullers

	Mu      sync.Mutex
	running map[string]*Supervisor
}

// NewHost returns a host without pods, which the end of the test removes.
func NewHost(t *testing.T) *Host {
	t.Helper()
	base := t.TempDir()
	h := &Host{T: t, running: map[string]*Supervisor{}}
	h.Env = map[string]string{"HOME": base, "XDG_DATA_HOME": base + "/data", "XDG_RUNTIME_DIR": base + "/run", "TERM": "xterm"}
	h.Dirs = store.Dirs{Data: base + "/data/podrun", Runtime: base + "/run/podrun"}
	if os.Getuid() == 0 {
		// Root's directories are fixed: tests must not touch the host's.
		t.Fatal("these tests run as an ordinary user: see TestMain")
	}
	t.Cleanup(func() {
		h.pullers.Wait()
		h.Mu.Lock()
		defer h.Mu.Unlock()
		for _, s := range h.running {
			s.Kill()
		}
		if t.Failed() {
			t.Log(h.pullerOutput.String())
		}
	})
	return h
}

// PodIDs is cmdutil.Deps.PodIDs.
func (h *Host) PodIDs() host.IDs {
	return host.IDs{Users: 65537, Groups: 65537, Hint: "ask for more ids"}
}

// CheckHugePages allows all.
func (h *Host) CheckHugePages(map[string]int64) error { return nil }

// SecurityModules returns none.
func (h *Host) SecurityModules() (host.AppArmor, host.SELinux) {
	return host.AppArmor{}, host.SELinux{}
}

// CheckHost returns the test's findings.
func (h *Host) CheckHost(host.Setup) []host.Finding { return h.Findings }

// DiagnoseHost returns the test's findings, or hangs.
func (h *Host) DiagnoseHost(ctx context.Context, _ host.Setup) []host.Finding {
	if h.Hangs != nil {
		close(h.Hangs)
		<-ctx.Done()
	}
	return h.Findings
}

// TryPod returns the test's error.
func (h *Host) TryPod(context.Context, store.Dirs) error { return h.TryErr }

// StartFirst starts nothing.
func (h *Host) StartFirst(store.Dirs) *podinit.First { return nil }

// OpenImages returns the fake store.
func (h *Host) OpenImages(store.Dirs) (cmdutil.ImageStore, error) { return h, nil }

// NewLauncher returns the fake launcher.
func (h *Host) NewLauncher(store.Dirs) (cmdutil.PodLauncher, error) { return h, nil }

// RunReplacer replaces the pod in this process.
func (h *Host) RunReplacer(_ store.Dirs, _ store.Pod, _ *store.FileLock, _ io.Writer, inProcess func() error) error {
	return inProcess()
}

// RemoveUnused returns what the test has set.
func (h *Host) RemoveUnused(uses func() (image.Uses, error)) (image.Pruned, error) {
	return h.GarbageCollect(uses)
}

// GarbageCollect returns what the test has set.
func (h *Host) GarbageCollect(func() (image.Uses, error)) (image.Pruned, error) {
	return h.Pruned, nil
}

// Lease holds nothing.
func (h *Host) Lease() (io.Closer, error) { return io.NopCloser(strings.NewReader("")), nil }

// Remove removes the files of a pod.
func (h *Host) Remove(p store.Pod) error { return p.Remove() }

// ResizeScope records its Plans' CPU requests.
func (h *Host) ResizeScope(_ store.Pod, from, to *pod.Plan) error {
	h.Resized = append(h.Resized, [2]int64{from.Resources.CPURequest, to.Resources.CPURequest})
	return h.ResizeErr
}

// RemoveVolume removes the directory of a claim.
func (h *Host) RemoveVolume(dir string) error { return os.RemoveAll(dir) }

// Supervisor returns the fake supervisor of a pod, or nil.
func (h *Host) Supervisor(namespace, name string) *Supervisor {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.running[namespace+"/"+name]
}

// Ensure returns an image, or the test's error.
func (h *Host) Ensure(_ context.Context, ref, policy string, o image.PullOptions) (pod.Image, error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if o.LocalOnly && (len(h.ImageErrs) > 0 || h.ImageErr != nil) {
		return pod.Image{}, image.ErrRegistryNeeded
	}
	h.pulls++
	if h.Policies == nil {
		h.Policies = map[string]string{}
	}
	h.Policies[ref] = policy
	if len(h.ImageErrs) > 0 {
		err := h.ImageErrs[0]
		h.ImageErrs = h.ImageErrs[1:]
		return pod.Image{}, err
	}
	for _, text := range o.AuthTexts {
		h.Logins[ref] = append(h.Logins[ref], string(text))
	}
	return pod.Image{Name: ref, ID: "sha256:" + strings.Repeat("0", 64), Layers: []string{"/layer"}, Cmd: []string{"sh"}}, h.ImageErr
}

// StartPuller runs a puller in this process.
func (h *Host) StartPuller(dirs store.Dirs, p store.Pod, options cmdutil.PullerOptions, lock *os.File) error {
	duplicate, err := podup.Dup(lock)
	if err != nil {
		return err
	}
	env := &cmdutil.Env{Getenv: func(string) string { return "" }, In: strings.NewReader(""), Out: io.Discard, ErrOut: &h.pullerOutput, Deps: h, PullBackOff: h.backOff, GoneTime: podclient.GoneTime}
	h.pullers.Go(func() {
		if err := podup.PullPod(h.T.Context(), env, dirs, p, options, duplicate); err != nil {
			h.T.Errorf("the puller of pod %s: %v", p.Name, err)
		}
	})
	return nil
}

// Pulls returns how often commands have requested an image.
func (h *Host) Pulls() int {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.pulls
}

// backOff is longer than a test: a second attempt is made only when a client requests it.
func (h *Host) backOff(int) time.Duration { return time.Hour }

// Start starts a fake supervisor.
func (h *Host) Start(p store.Pod, plan *pod.Plan, with cmdutil.StartOptions) (string, error) {
	if with.Record != nil {
		if err := with.Record(); err != nil {
			return "", err
		}
	}
	return "", h.startSupervisor(p, plan, with.Lock)
}

func (h *Host) startSupervisor(p store.Pod, plan *pod.Plan, lock *os.File) error {
	if h.StartErr != nil {
		return h.StartErr
	}
	fd, err := unix.FcntlInt(lock.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	s := &Supervisor{
		t: h.T, Pod: p, Plan: plan, lock: os.NewFile(uintptr(fd), "lock"),
		Stops: make(chan *int64, 8), ended: make(chan struct{}), changed: make(chan struct{}),
		Exec: func(c *ExecClient) { c.Fail("no exec here", 125) },
	}
	if s.Listener, err = p.Listen(); err != nil {
		return err
	}
	h.Mu.Lock()
	h.running[p.Namespace+"/"+p.Name] = s
	h.Mu.Unlock()
	go s.serve()
	if h.Script != nil {
		go h.Script(s)
	}
	return nil
}

// UpDetached starts a pod and returns its supervisor, which the test then controls.
func (h *Host) UpDetached(manifest string, before func(*Supervisor)) *Supervisor {
	h.T.Helper()
	h.Script = func(s *Supervisor) {
		if before != nil {
			before(s)
		}
		s.Publish(Status(pod.Running, RunningContainer("app")))
	}
	if got := h.Run("up", "-d", h.File(manifest)); got.Code != 0 {
		h.T.Fatalf("%+v", got)
	}
	return h.Supervisor("default", "web")
}

// File writes a manifest and returns its path.
func (h *Host) File(text string) string {
	h.T.Helper()
	f, err := os.CreateTemp(h.T.TempDir(), "*.yaml")
	if err != nil {
		h.T.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		h.T.Fatal(err)
	}
	return f.Name()
}
