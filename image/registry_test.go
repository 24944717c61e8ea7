package image

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/testenv"
)

// startRegistry runs Debian's docker-registry on a free port of the loopback and
// returns "127.0.0.1:port".
func startRegistry(t testing.TB) string { t.Helper(); return startRegistryWith(t, "") }

// startRegistryWith adds lines to its configuration, the first of them below "http".
func startRegistryWith(t testing.TB, more string) string {
	t.Helper()
	testenv.Need(t, func() error { _, err := exec.LookPath("docker-registry"); return err })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp:\n  addr: %s\n", dir, addr) + more
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("docker-registry", "serve", file)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("docker-registry does not answer: %v\n%s", err, said.String())
		}
	}
}

func TestPull(t *testing.T) {
	addr := startRegistry(t)
	here := two(t, "two")
	here.Compress = gzipped
	layout := newLayout(t).add(here).path()
	for _, format := range []string{"oci", "v2s2"} {
		t.Run(format, func(t *testing.T) {
			testenv.NoLeaks(t)
			ref := addr + "/team/two:" + format
			skopeo(t, "copy", "--dest-tls-verify=false", "--format", format, "oci:"+layout+":two", "docker://"+ref)
			s := newStore(t)
			var told progressLog
			got, err := s.Pull(context.Background(), ref, api.PullOptions{Progress: told.add})
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != ref || got.User != "app" {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(twoMerged, merged(t, got.Layers)); diff != "" {
				t.Errorf("root file system (-want +got):\n%s", diff)
			}
			if n := told.count(api.Done); n != 2 {
				t.Errorf("%d layers were reported done, want 2", n)
			}
			told = progressLog{}
			again, err := s.Pull(context.Background(), ref, api.PullOptions{Progress: told.add})
			if diff := cmp.Diff(got, again); err != nil || diff != "" || told.count(api.Exists) != 2 {
				t.Errorf("second pull: %v, %d layers exist\n%s", err, told.count(api.Exists), diff)
			}
			byDigest := addr + "/team/two@" + got.Digest
			pinned, err := newStore(t).Pull(context.Background(), byDigest, api.PullOptions{})
			if err != nil || pinned.ID != got.ID || pinned.Name != byDigest {
				t.Errorf("pull by digest: %+v, %v", pinned, err)
			}
		})
	}
}

// progressLog records progress.
type progressLog struct {
	mu   sync.Mutex
	list []api.Progress
}

func (l *progressLog) add(p api.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, p)
}

func (l *progressLog) count(s api.Status) int {
	n := 0
	for _, p := range l.list {
		if p.Status == s {
			n++
		}
	}
	return n
}

// fake is a registry of one repository, "x", that answers as configured.
type fake struct {
	t     *testing.T
	blobs map[string][]byte // path below /v2/x/ -> content
	types map[string]string
	edit  func(w http.ResponseWriter, r *http.Request) bool // answers instead
	asked sync.Map
	close func()
}

func newFake(t *testing.T, l *layoutDir) (*fake, string) {
	t.Helper()
	fk := &fake{t: t, blobs: map[string][]byte{}, types: map[string]string{}}
	blobs, err := filepath.Glob(filepath.Join(l.dir, "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range blobs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fk.blobs["blobs/sha256:"+filepath.Base(path)] = b
		fk.blobs["manifests/sha256:"+filepath.Base(path)] = b
	}
	top := l.index.Manifests[0]
	fk.blobs["manifests/latest"] = l.read(top.Digest)
	fk.types["manifests/latest"] = top.MediaType
	fk.types["manifests/"+top.Digest.String()] = top.MediaType
	srv := httptest.NewServer(fk)
	t.Cleanup(srv.Close)
	fk.close = srv.Close
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return fk, u.Host + "/x"
}

func (fk *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fk.asked.Store(r.URL.Path, true)
	if fk.edit != nil && fk.edit(w, r) {
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/v2/x/")
	b, there := fk.blobs[name]
	switch {
	case r.URL.Path == "/v2/":
	case !ok || !there:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", fk.types[name])
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Write(b)
	}
}
