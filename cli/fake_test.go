package cli

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

// bound is how long anything may take in these tests.
const bound = time.Minute

// world is a machine on which commands run: real directories, a fake image store
// and fake supervisors that serve real sockets.
type world struct {
	t         *testing.T
	env       map[string]string
	dirs      store.Dirs
	findings  []host.Finding
	tryErr    error
	hangs     chan struct{} // if not nil, examine closes it and waits to be ended
	imageErr  error
	imageErrs []error           // of the first images that are asked for, instead
	ensured   int               // how often an image was asked for
	pruned    image.Pruned      // what a disk that is nearly full has lost
	policies  map[string]string // by which an image was asked for last
	still     time.Duration     // after which is told what is waited for; 0: it is not
	script    func(*supervisor) // what a started pod does
	startErr  error
	logins    map[string][]string // with which images were asked for

	pullers sync.WaitGroup
	said    buffer // by pullers

	mu      sync.Mutex
	running map[string]*supervisor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, running: map[string]*supervisor{}}
	w.env = map[string]string{"HOME": base, "XDG_DATA_HOME": base + "/data", "XDG_RUNTIME_DIR": base + "/run", "TERM": "xterm"}
	w.dirs = store.Dirs{Data: base + "/data/podrun", Runtime: base + "/run/podrun"}
	if os.Getuid() == 0 {
		// Root's directories are fixed: tests must not touch the machine's.
		t.Fatal("these tests run as an ordinary user: see TestMain")
	}
	t.Cleanup(func() {
		w.pullers.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.running {
			s.kill()
		}
		if t.Failed() {
			t.Log(w.said.String())
		}
	})
	return w
}

func (w *world) PodIDs() host.IDs {
	return host.IDs{Users: 65537, Groups: 65537, Cure: "ask for more ids"}
}
func (w *world) CheckHugePages(map[string]int64) error { return nil }
func (w *world) SecurityModules() (host.AppArmor, host.SELinux) {
	return host.AppArmor{}, host.SELinux{}
}
func (w *world) CheckHost(host.Setup) []host.Finding { return w.findings }
func (w *world) DiagnoseHost(ctx context.Context, _ host.Setup) []host.Finding {
	if w.hangs != nil {
		close(w.hangs)
		<-ctx.Done()
	}
	return w.findings
}
func (w *world) TryPod(context.Context, store.Dirs) error            { return w.tryErr }
func (w *world) Prespawn(store.Dirs) *podinit.Prespawn               { return nil }
func (w *world) OpenImages(store.Dirs) (cmdutil.ImageStore, error)   { return w, nil }
func (w *world) NewLauncher(store.Dirs) (cmdutil.PodLauncher, error) { return w, nil }
func (w *world) ReplaceInBackground(_ store.Dirs, _ store.Pod, _ *store.FileLock, _ io.Writer, here func() error) error {
	return here()
}
func (w *world) GarbageCollect(func() (image.Uses, error)) (image.Pruned, error) {
	return w.pruned, nil
}
func (w *world) Lease() (io.Closer, error) { return io.NopCloser(strings.NewReader("")), nil }
func (w *world) Remove(p store.Pod) error  { return p.Remove() }
func (w *world) RemoveClaim(namespace, name string) error {
	dir, err := w.dirs.ClaimDir(namespace, name)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	return err
}
func (w *world) supervisor(namespace, name string) *supervisor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[namespace+"/"+name]
}

func (w *world) Ensure(_ context.Context, ref, policy string, o image.PullOptions) (pod.Image, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.LocalOnly && (len(w.imageErrs) > 0 || w.imageErr != nil) {
		return pod.Image{}, image.ErrRegistryNeeded
	}
	w.ensured++
	if w.policies == nil {
		w.policies = map[string]string{}
	}
	w.policies[ref] = policy
	if len(w.imageErrs) > 0 {
		err := w.imageErrs[0]
		w.imageErrs = w.imageErrs[1:]
		return pod.Image{}, err
	}
	for _, text := range o.AuthFiles {
		w.logins[ref] = append(w.logins[ref], string(text))
	}
	return pod.Image{Name: ref, ID: "sha256:" + strings.Repeat("0", 64), Layers: []string{"/layer"}, Cmd: []string{"sh"}}, w.imageErr
}

// StartPuller is a puller in this process.
func (w *world) StartPuller(dirs store.Dirs, p store.Pod, wishes cmdutil.PullerOptions, lock *os.File) error {
	own, err := podup.Dup(lock)
	if err != nil {
		return err
	}
	f := &cmdutil.Env{Getenv: func(string) string { return "" }, In: strings.NewReader(""), Out: io.Discard, ErrOut: &w.said, Deps: w, PullBackOff: w.backOff}
	w.pullers.Go(func() {
		if err := podup.PullPod(w.t.Context(), f, dirs, p, wishes, own); err != nil {
			w.t.Errorf("the puller of pod %s: %v", p.Name, err)
		}
	})
	return nil
}

// asked is how often an image was asked for.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ensured
}

// BackOff is longer than a test: no second attempt is made before a client asks for it.
func (w *world) backOff(int) time.Duration { return time.Hour }

func (w *world) Start(p store.Pod, plan *pod.Plan, with cmdutil.StartOptions) (string, error) {
	if with.Record != nil {
		if err := with.Record(); err != nil {
			return "", err
		}
	}
	return "", w.startSupervisor(p, plan, with.Lock)
}

func (w *world) startSupervisor(p store.Pod, plan *pod.Plan, lock *os.File) error {
	if w.startErr != nil {
		return w.startErr
	}
	fd, err := unix.FcntlInt(lock.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	s := &supervisor{
		t: w.t, pod: p, plan: plan, lock: os.NewFile(uintptr(fd), "lock"),
		stops: make(chan *int64, 8), ended: make(chan struct{}), changed: make(chan struct{}),
		exec: func(c *execClient) { c.fail("no exec here", 125) },
	}
	if s.listener, err = p.Listen(); err != nil {
		return err
	}
	w.mu.Lock()
	w.running[p.Namespace+"/"+p.Name] = s
	w.mu.Unlock()
	go s.serve()
	if w.script != nil {
		go w.script(s)
	}
	return nil
}
