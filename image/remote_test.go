package image

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// newRemoteStore returns a store with the image program in a process of its own.
func newRemoteStore(t *testing.T) *Store {
	t.Helper()
	testenv.NoLeaks(t)
	s, err := Open(filepath.Join(tempDir(t), "images"), NewProgram(func() (string, func(), error) { return "/proc/self/exe", func() {}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// imageProgramPID returns the only child of this process that is an image program.
func imageProgramPID(t *testing.T) int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, word := range strings.Fields(string(text)) {
			line, _ := os.ReadFile("/proc/" + word + "/cmdline")
			if pid, err := strconv.Atoi(word); err == nil && bytes.Contains(line, []byte("\x00"+protocol.EntryImage+"\x00")) {
				return pid
			}
		}
	}
	t.Fatal("no image program runs")
	return 0
}

// TestRemote pulls, saves and loads with the image program in another process. Progress, results and
// errors are the same as in this process.
func TestRemote(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	ctx := context.Background()
	s := newRemoteStore(t)
	began, done := 0, 0
	o := api.PullOptions{BeforePull: func() { began++ }, Progress: func(p api.Progress) {
		if p.Status == api.Done && p.Image == repo {
			done++
		}
	}}
	img, err := s.Pull(ctx, repo, o)
	if err != nil || img.Name != repo+":latest" || began != 1 || done != 1 {
		t.Fatalf("%+v, %v; %d pulls began, and %d layers are done", img, err, began, done)
	}
	var saved bytes.Buffer
	if err := s.Save(ctx, []string{repo}, Target{Out: &saved, Scratch: t.TempDir()}, SaveOptions{Format: OCIArchive}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(file, saved.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	other := newRemoteStore(t)
	if again, err := other.Load(ctx, file); err != nil || len(again) != 1 || again[0].ID != img.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := other.Import(ctx, file+"x", "y"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("import of no file: %v", err)
	}
	if err := s.Save(ctx, []string{"none"}, Target{Out: &saved, Scratch: t.TempDir()}, SaveOptions{Format: OCIArchive}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("save of no image: %v", err)
	}
	fk.edit = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusUnauthorized); return true }
	_, err = other.Pull(ctx, repo+":2", api.PullOptions{})
	if api.Reason(err) != api.ErrImagePull || api.IsTransient(err) || !strings.Contains(report.Hint(err), "podrun login") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	_, err = other.Pull(ctx, "127.0.0.1:1/x", api.PullOptions{})
	if api.Reason(err) != api.ErrImagePull || !api.IsTransient(err) {
		t.Errorf("a registry that does not answer: %v", err)
	}
	if _, err = other.Pull(ctx, "A", api.PullOptions{}); api.Reason(err) != api.InvalidImageName || report.ClassOf(err) != report.Usage {
		t.Errorf("a bad name: %v", err)
	}
}

// TestRemoteEnds cancels a pull, and kills the image program during another.
func TestRemoteEnds(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	s := newRemoteStore(t)
	asked, release := make(chan struct{}, 1), make(chan struct{})
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { close(release) }) })
	ctx, cancel := context.WithCancel(context.Background())
	pull := func() chan error {
		failed := make(chan error, 1)
		go func() {
			_, err := s.Pull(ctx, repo, api.PullOptions{})
			failed <- err
		}()
		<-asked
		return failed
	}
	failed := pull()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx = context.Background()
	failed = pull()
	if err := syscall.Kill(imageProgramPID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the image program ended: signal: killed") || report.ClassOf(err) != report.Internal {
		t.Errorf("killed: %v", err)
	}
}

// TestShortNamesAreCached: the image program is asked once for a short name, until the configuration
// changes.
func TestShortNamesAreCached(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "registries.conf")
	t.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	starts := 0
	s, err := Open(filepath.Join(tempDir(t), "images"), NewProgram(func() (string, func(), error) { starts++; return "/proc/self/exe", func() {}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	for i, host := range []string{"one.example", "second.example"} {
		if err := os.WriteFile(conf, []byte("unqualified-search-registries = [\""+host+"\"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := s.candidates("web:1"); len(got) != 1 || got[0].String() != host+"/web:1" || starts != i+1 {
				t.Errorf("%v after %d starts", got, starts)
			}
		}
	}
	if got := s.candidates("three.example/x"); got != nil || starts != 2 {
		t.Errorf("%v after %d starts", got, starts)
	}
}
