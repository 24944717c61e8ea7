package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

func hexOf(i int) string {
	sum := sha256.Sum256(fmt.Append(nil, i))
	return hex.EncodeToString(sum[:])
}

func idOf(i pod.Image) digest.Digest { return digest.Digest(i.ID) }

// loadEntry runs in another podrun process: "_load DIR PATH [memory]" prints the progress of each layer, and
// the memory used.
func loadEntry(args []string) int {
	s, err := openStore(args[0])
	if err == nil {
		_, err = s.Fetch(context.Background(), api.Location{Path: args[1]}, api.PullOptions{Progress: func(p api.Progress) {
			if p.Status != api.Fetching {
				fmt.Println(p.Layer, p.Status)
			}
		}})
	}
	if err == nil && len(args) > 2 {
		err = printMemory()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// importEntry runs in another podrun process: "_import DIR PATH NAME".
func importEntry(args []string) int {
	s, err := openStore(args[0])
	if err == nil {
		_, err = s.Import(context.Background(), args[1], args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestLoadOnce starts several processes that load one image: each layer is unpacked by one of them, and all
// of them succeed.
func TestLoadOnce(t *testing.T) {
	var layers [][]byte
	for i := range 4 {
		layers = append(layers, layerTar(t, f{Name: fmt.Sprint("f", i), Content: strings.Repeat("x", 1<<20)}))
	}
	path := newLayout(t).add(img{Name: "x", Layers: layers}).path()
	s := newStore(t)
	var running []*exec.Cmd
	var out [6]bytes.Buffer
	for i := range out {
		cmd := reexec.Command(reexec.Spec{Name: "_load", Args: []string{s.Dir, path}})
		cmd.Stdout, cmd.Stderr = &out[i], &out[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	done := map[string]int{}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, out[i].String())
		}
		for line := range strings.Lines(out[i].String()) {
			if layer, ok := strings.CutSuffix(strings.TrimSpace(line), " "+string(api.Done)); ok {
				done[layer]++
			}
		}
	}
	want := map[string]int{}
	for _, l := range layers {
		want[digest.FromBytes(l).String()] = 1
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("how often each layer was unpacked (-want +got):\n%s", diff)
	}
	if _, err := s.Resolve("x"); err != nil {
		t.Error(err)
	}
}

// TestKilled kills an import in the middle: nothing is visible, the unpacker ends, and the next process that
// adds an image removes the rest.
func TestKilled(t *testing.T) {
	testenv.NoLeaks(t)
	s := newStore(t)
	fifo := filepath.Join(t.TempDir(), "rootfs")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := reexec.Command(reexec.Spec{Name: "_import", Args: []string{s.Dir, fifo, "x"}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	half := layerTar(t, f{Name: "whole", Content: "x"}, f{Name: "half", Content: strings.Repeat("x", 4<<20)})[:3<<20]
	if _, err := in.Write(half); err != nil {
		t.Fatal(err)
	}
	await(t, "the unpacker to write", func() bool {
		found, _ := filepath.Glob(filepath.Join(s.Dir, records.StagingDir, "layer-*", records.LayerFS, "half"))
		return len(found) == 1
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if list, err := s.List(); err != nil || len(list) > 0 {
		t.Errorf("List: %v, %v", list, err)
	}
	await(t, "the unpacker to end", func() bool {
		lock, err := s.Lock()
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		alone, err := lock.TryExclusive()
		return alone && err == nil
	})
	if left := content(t, s); len(left) != 1 || !strings.HasPrefix(left[0], records.StagingDir) {
		t.Errorf("left in the store: %v; want one directory in staging", left)
	}
	rootfs := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(rootfs, layerTar(t, f{Name: "whole", Content: "x"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(context.Background(), rootfs, "x"); err != nil {
		t.Fatal(err)
	}
	if staged, _ := filepath.Glob(filepath.Join(s.Dir, records.StagingDir, "layer-*")); len(staged) > 0 {
		t.Errorf("left in staging: %v", staged)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// escapeEntry confines itself to a directory, as the unpacker does, and tries what a hijacked unpacker
// would.
func escapeEntry(args []string) (tree, error) {
	secret, err := os.Open(args[1])
	if err != nil {
		return nil, err
	}
	secret.Close()
	release := manyThreads(20)
	tasks, err := os.OpenRoot("/proc/self/task")
	if err != nil {
		return nil, err
	}
	if err := layer.Confine(args[0], 1<<20, 0); err != nil {
		return nil, err
	}
	t := tree{"privileges of threads": privilegesOf(tasks)}
	release()
	try := func(what string, err error) { t[what] = fmt.Sprint(err) }
	_, err = os.ReadFile(args[1])
	try("read a file outside", err)
	_, err = os.ReadFile("/proc/self/status")
	try("read /proc", err)
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	try("make a socket", err)
	try("mount", unix.Mount("none", "/", "tmpfs", 0, ""))
	try("make a namespace", unix.Unshare(unix.CLONE_NEWUSER))
	try("run a program", unix.Exec("/program", []string{"program"}, nil))
	try("signal the parent", unix.Kill(os.Getppid(), 0))
	try("make a device", unix.Mknod("/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	try("make a whiteout", unix.Mknod("/whiteout", unix.S_IFCHR, 0))
	try("own a file", func() error {
		if err := os.WriteFile("/owned", []byte("x"), 0o600); err != nil {
			return err
		}
		return os.Chown("/owned", 0, 0)
	}())
	f, err := os.Create("/large")
	if err == nil {
		_, err = io.CopyN(f, endless{}, 2<<20)
	}
	try("write a large file", err)
	return t, nil
}

// manyThreads occupies threads until release is called: half of them wait in a system call, half compute.
func manyThreads(n int) (release func()) {
	var begun, ended sync.WaitGroup
	var stop atomic.Bool
	for i := range n {
		begun.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			begun.Done()
			for !stop.Load() {
				if i%2 == 0 {
					unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
				}
			}
		})
		begun.Wait()
	}
	return func() { stop.Store(true); ended.Wait() }
}

// privilegesOf returns the different sets of privileges among threads.
func privilegesOf(tasks *os.Root) string {
	dir, err := tasks.Open(".")
	if err != nil {
		return err.Error()
	}
	names, err := dir.Readdirnames(-1)
	if err != nil || len(names) < 20 {
		return fmt.Sprint(names, err)
	}
	var all []string
	for _, name := range names {
		text, _ := tasks.ReadFile(name + "/status")
		var own []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
				own = append(own, strings.Join(strings.Fields(line), " "))
			}
		}
		all = append(all, strings.Join(own, ", "))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

func TestConfinement(t *testing.T) {
	dir := tempDir(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := inUserns(t, "_escape", dir, secret)
	want := tree{
		"privileges of threads": "CapInh: 0000000000000000, CapPrm: 000000008000001b, CapEff: 000000008000001b, CapBnd: 000000008000001b, CapAmb: 0000000000000000, NoNewPrivs: 1",
		"read a file outside":   "open " + secret + ": no such file or directory",
		"read /proc":            "open /proc/self/status: no such file or directory",
		"make a socket":         "operation not permitted",
		"mount":                 "operation not permitted",
		"make a namespace":      "operation not permitted",
		"run a program":         "operation not permitted",
		"signal the parent":     "operation not permitted",
		"make a device":         "operation not permitted",
		"make a whiteout":       "<nil>",
		"own a file":            "<nil>",
		"write a large file":    "write /large: file too large",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("confined (-want +got):\n%s", diff)
	}
}

// singleIDEnv marks the process without newuidmap.
const singleIDEnv = "PODRUN_TEST_SINGLE_ID"

// TestSingleID unpacks for a user without subordinate ids: 0 is the only id.
func TestSingleID(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root has every id; the same test runs as an ordinary user
	}
	if os.Getenv(singleIDEnv) == "" {
		program, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		cmd := exec.Command("setpriv", "--no-new-privs", "/proc/self/fd/3", "-test.run=^TestSingleID$")
		cmd.ExtraFiles = []*os.File{program}
		cmd.Env = append(os.Environ(), singleIDEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	layer := layerTar(t, f{Name: "root", Mode: 0o4755}, f{Name: "web", Content: "x", UID: 33, GID: 33, Mode: 0o6755},
		f{Name: "hard", Type: '1', Link: "web", UID: 33, GID: 33, Mode: 0o6755}, f{Name: "dir/", UID: 1000, Mode: 0o2775},
		f{Name: ".wh.gone"}, f{Name: "dir/.wh..wh..opq"})
	s := newStore(t)
	got := load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{layer}}).path())
	want := tree{
		".": "dir 0755 0:0", "root": "file 4755 0:0 ", "web": "file 0755 0:0 x", "hard": "file 0755 0:0 x",
		"dir": "dir 2775 0:0 user.overlay.opaque", "gone": "char 0000 0:0 0:0",
	}
	if diff := cmp.Diff(want, inUserns(t, "_tree", got.Layers[0])); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	if list, err := s.List(); err != nil || list[0].UnmappedOwners != 3 {
		t.Errorf("List: %+v, %v; want 3 squashed files", list, err)
	}
	if err := s.Remove("x", RemoveOptions{}); err != nil {
		t.Error(err)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}
