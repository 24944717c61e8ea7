package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/scriptcmd"
	"github.com/podrun/podrun/internal/testenv"
)

const prespawnPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: app, image: busybox, imagePullPolicy: Never, command: [sleep, "1000"]}
`

// prespawned is a `podrun up` that waits for its manifest, and the first process that it has
// started.
type prespawned struct {
	*exec.Cmd
	in     io.WriteCloser
	output *bytes.Buffer
	pid    int
}

// newPrespawnHost returns a host with podrun's programs unpacked and manifests of the pods "a" and
// "b".
func newPrespawnHost(t *testing.T) *host {
	t.Helper()
	testenv.Need(t, func() error {
		if os.Geteuid() == 0 {
			return errors.New("root's pods have no user namespace to enter ahead")
		}
		return nil
	})
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(h.manifest(name), []byte(strings.ReplaceAll(prespawnPod, "NAME", name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.must(t, "up", "-d", h.manifest("a"))
	h.must(t, "down", "a")
	h.nothingLeft(t)
	return h
}

func (h *host) manifest(name string) string { return filepath.Join(h.dir, name+".yaml") }

func (h *host) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := h.podrun(args...).CombinedOutput(); err != nil {
		t.Fatalf("podrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (h *host) nothingLeft(t *testing.T) {
	t.Helper()
	var found []string
	if !scriptcmd.Poll(func() bool { found = h.left(); return len(found) == 0 }) {
		t.Fatalf("left behind:\n%s", strings.Join(found, "\n"))
	}
}

// startUp starts `podrun up` and returns when its prespawned process waits.
func (h *host) startUp(t *testing.T) *prespawned {
	t.Helper()
	a := &prespawned{Cmd: h.podrun("up", "-d", "-"), output: &bytes.Buffer{}}
	a.Stdout, a.Stderr = a.output, a.output
	var err error
	if a.in, err = a.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Process.Kill() })
	waits := func() bool { a.pid = h.firstProcess(); return a.pid > 0 && isWaiting(a.pid) }
	if !scriptcmd.Poll(waits) {
		t.Fatalf("no first process was begun while podrun reads the manifest: %s", a.output)
	}
	return a
}

// firstProcess returns a process that belongs to no pod yet: its arguments name none.
func (h *host) firstProcess() int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		cmdline, err := os.ReadFile(l)
		if err == nil && bytes.Contains(cmdline, []byte("\x00_supervisor\x00"+h.dir+"/")) && bytes.Count(cmdline, []byte{0}) == 4 {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(l)))
			return pid
		}
	}
	return 0
}

// isWaiting reports whether a process waits for a message in its user namespace.
func isWaiting(pid int) bool {
	namespace, err := os.Readlink("/proc/self/ns/user")
	theirs, terr := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	children, cerr := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	ids, ierr := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", pid))
	return errors.Join(err, terr, cerr, ierr) == nil && namespace != theirs && len(children) == 0 && len(ids) > 0
}

// manifest sends the command a manifest, and returns its error and its output.
func (a *prespawned) manifest(text string) (string, error) {
	_, err := io.WriteString(a.in, text)
	err = errors.Join(err, a.in.Close(), a.Wait())
	return a.output.String(), err
}

// session returns the session of a pod's monitor, the same as of its first process.
func (h *host) session(t *testing.T, pod string) int {
	t.Helper()
	_, _, monitor := h.podInit(t, pod)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", monitor))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// podInit returns the content of a pod's lock file.
func (h *host) podInit(t *testing.T, pod string) (pid int, start uint64, monitor int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "data/podrun/pods/default", pod, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &pid, &start, &monitor); err != nil {
		t.Fatal(err)
	}
	return pid, start, monitor
}

func (h *host) userNamespace(t *testing.T, pod string) string {
	t.Helper()
	pid, _, _ := h.podInit(t, pod)
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// TestPrespawn: a pod's first process starts while the manifest is read, and becomes the pod's.
func TestPrespawn(t *testing.T) {
	h := newPrespawnHost(t)
	for _, other := range []bool{false, true} { // the second pod joins the first one's user namespace
		if other {
			h.must(t, "up", "-d", h.manifest("b"))
		}
		a := h.startUp(t)
		if output, err := a.manifest(strings.ReplaceAll(prespawnPod, "NAME", "a")); err != nil {
			t.Fatalf("up: %v\n%s", err, output)
		}
		if session := h.session(t, "a"); session != a.pid {
			t.Errorf("the pod is of the session %d, not of the prespawned process, %d", session, a.pid)
		}
		if other && h.userNamespace(t, "a") != h.userNamespace(t, "b") {
			t.Error("the two pods are in different user namespaces")
		}
		h.must(t, "exec", "a", "--", "true")
		h.must(t, "down", "a")
	}
	h.must(t, "down", "b")
	h.nothingLeft(t)
}

// TestPrespawnedProcessIsReplaced: if the prespawned process is unusable, another starts as without
// prespawning.
func TestPrespawnedProcessIsReplaced(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, h *host, a *prespawned){
		"another pod has begun, and has made the user namespace": func(t *testing.T, h *host, _ *prespawned) {
			h.must(t, "up", "-d", h.manifest("b"))
		},
		"it was killed": func(t *testing.T, _ *host, a *prespawned) {
			if err := syscall.Kill(a.pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			exited := func() bool { // and not reaped yet
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.pid))
				return err == nil && bytes.Contains(stat, []byte(") Z "))
			}
			if !scriptcmd.Poll(exited) {
				t.Fatal("it does not exit")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newPrespawnHost(t)
			a := h.startUp(t)
			meanwhile(t, h, a)
			if output, err := a.manifest(strings.ReplaceAll(prespawnPod, "NAME", "a")); err != nil {
				t.Fatalf("up: %v\n%s", err, output)
			}
			if session := h.session(t, "a"); session == a.pid {
				t.Error("the pod is of the process that did not suit")
			}
			if _, err := os.Stat(filepath.Join(h.dir, "data/podrun/pods/default/b/lock")); err == nil {
				if h.userNamespace(t, "a") != h.userNamespace(t, "b") {
					t.Error("the two pods are in different user namespaces")
				}
				h.must(t, "down", "b")
			}
			h.must(t, "exec", "a", "--", "true")
			h.must(t, "down", "a")
			h.nothingLeft(t)
		})
	}
	t.Run("the pod whose user namespace it has joined has ended", func(t *testing.T) {
		h := newPrespawnHost(t)
		h.must(t, "up", "-d", h.manifest("b"))
		a := h.startUp(t)
		h.must(t, "down", "b")
		if output, err := a.manifest(strings.ReplaceAll(prespawnPod, "NAME", "a")); err != nil {
			t.Fatalf("up: %v\n%s", err, output)
		}
		if session := h.session(t, "a"); session == a.pid {
			t.Error("the pod is of the process that did not suit")
		}
		h.must(t, "down", "a")
		h.nothingLeft(t)
	})
}

// TestPrespawnedProcessEndsWithUp: the prespawned process ends with a command that fails or is
// killed, and leaves nothing.
func TestPrespawnedProcessEndsWithUp(t *testing.T) {
	h := newPrespawnHost(t)
	before := h.snapshot()
	for name, end := range map[string]func(a *prespawned) error{
		"a refusal":         func(a *prespawned) error { _, err := a.manifest("kind: Rubbish\n"); return err },
		"an empty manifest": func(a *prespawned) error { _, err := a.manifest(""); return err },
		"an image not there": func(a *prespawned) error {
			_, err := a.manifest(strings.ReplaceAll(prespawnPod, "busybox", "nowhere:1"))
			return err
		},
		"a kill": func(a *prespawned) error { return errors.Join(a.Process.Kill(), a.Wait()) },
		"an end by the user": func(a *prespawned) error {
			return errors.Join(a.Process.Signal(syscall.SIGTERM), a.in.Close(), a.Wait())
		},
		"a manifest of a Job": func(a *prespawned) error {
			_, err := a.manifest("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n")
			return err
		},
	} {
		a := h.startUp(t)
		if err := end(a); err == nil {
			t.Errorf("%s: the command has succeeded: %s", name, a.output)
		}
		if !scriptcmd.Poll(func() bool { return h.snapshot() == before }) {
			t.Fatalf("%s: %s\nbefore:\n%s\nafter:\n%s", name, a.output, before, h.snapshot())
		}
	}
}
