package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
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
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// startRegistry runs Debian's docker-registry on a free port of the loopback and
// returns "127.0.0.1:port".
func startRegistry(t testing.TB) string {
	t.Helper()
	testenv.Need(t, func() error { _, err := exec.LookPath("docker-registry"); return err })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n", dir, addr)
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
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
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
			got, err := s.Pull(context.Background(), ref, PullOptions{Progress: told.add})
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != ref || got.User != "app" {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(twoMerged, merged(t, got.Layers)); diff != "" {
				t.Errorf("root file system (-want +got):\n%s", diff)
			}
			if n := told.count(Done); n != 2 {
				t.Errorf("%d layers were reported done, want 2", n)
			}
			told = progressLog{}
			again, err := s.Pull(context.Background(), ref, PullOptions{Progress: told.add})
			if diff := cmp.Diff(got, again); err != nil || diff != "" || told.count(Exists) != 2 {
				t.Errorf("second pull: %v, %d layers exist\n%s", err, told.count(Exists), diff)
			}
			byDigest := addr + "/team/two@" + got.Digest
			pinned, err := newStore(t).Pull(context.Background(), byDigest, PullOptions{})
			if err != nil || pinned.ID != got.ID || pinned.Name != byDigest {
				t.Errorf("pull by digest: %+v, %v", pinned, err)
			}
		})
	}
}

// progressLog remembers what was told.
type progressLog struct {
	mu   sync.Mutex
	list []Progress
}

func (l *progressLog) add(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, p)
}

func (l *progressLog) count(s Status) int {
	n := 0
	for _, p := range l.list {
		if p.Status == s {
			n++
		}
	}
	return n
}

// fake is a registry of one repository, "x", that says what it is told to.
type fake struct {
	t     *testing.T
	blobs map[string][]byte // path below /v2/x/ -> content
	types map[string]string
	edit  func(w http.ResponseWriter, r *http.Request) bool // answers instead
	asked sync.Map
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

// TestHostileRegistry pulls from registries that lie.
func TestHostileRegistry(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x", Content: strings.Repeat("x", 5000)})}})
	l.path()
	var m v1.Manifest
	top := l.index.Manifests[0].Digest
	if err := json.Unmarshal(l.read(top), &m); err != nil {
		t.Fatal(err)
	}
	layer, config := "blobs/"+m.Layers[0].Digest.String(), "blobs/"+m.Config.Digest.String()
	for name, tt := range map[string]struct {
		change func(fk *fake)
		ref    string // after the repository
		want   string
	}{
		"layer changed":    {func(fk *fake) { fk.blobs[layer] = bytes.Replace(fk.blobs[layer], []byte("xxx"), []byte("yyy"), 1) }, "", "instead of sha256:"},
		"layer short":      {func(fk *fake) { fk.blobs[layer] = fk.blobs[layer][:3000] }, "", "EOF"},
		"layer long":       {func(fk *fake) { fk.blobs[layer] = append(fk.blobs[layer], 0) }, "", "longer than its"},
		"layer missing":    {func(fk *fake) { delete(fk.blobs, layer) }, "", "404"},
		"config changed":   {func(fk *fake) { fk.blobs[config] = bytes.ToUpper(fk.blobs[config]) }, "", "instead of sha256:"},
		"config short":     {func(fk *fake) { fk.blobs[config] = fk.blobs[config][:10] }, "", "EOF"},
		"manifest by tag":  {func(fk *fake) { fk.blobs["manifests/latest"] = []byte("{") }, "", "manifest"},
		"manifest changed": {func(fk *fake) { fk.blobs["manifests/"+top.String()] = append(l.read(top), ' ') }, "@" + top.String(), "instead of sha256:"},
		"manifest large": {func(fk *fake) {
			fk.blobs["manifests/latest"] = append(l.read(top), bytes.Repeat([]byte(" "), maxJSON)...)
		},
			"", "4194304"},
		"schema 1": {func(fk *fake) {
			fk.blobs["manifests/latest"] = []byte(`{"schemaVersion":1,"name":"x","tag":"latest","architecture":"amd64","fsLayers":[],"history":[],"signatures":[]}`)
			fk.types["manifests/latest"] = "application/vnd.docker.distribution.manifest.v1+prettyjws"
		}, "", "schema 1"},
		"other type": {func(fk *fake) { fk.types["manifests/latest"] = v1.MediaTypeImageIndex }, "", "ambiguous"},
		"unauthorized": {func(fk *fake) {
			fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
		}, "", "authentication required"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			tt.change(fk)
			s := newStore(t)
			_, err := s.Pull(context.Background(), repo+tt.ref, PullOptions{})
			wantError(t, err, tt.want)
			if Reason(err) != ErrImagePull {
				t.Errorf("reason %q, want %s", Reason(err), ErrImagePull)
			}
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
	t.Run("foreign URLs", func(t *testing.T) { // S12: nobody else is asked
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the manifest's URL was asked") }))
		defer other.Close()
		l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}, Edit: func(_ *v1.Image, m *v1.Manifest) {
			m.Layers[0].MediaType = "application/vnd.docker.image.rootfs.foreign.diff.tar"
			m.Layers[0].URLs = []string{other.URL + "/layer"}
		}})
		_, repo := newFake(t, l)
		if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestPullTLS needs a certificate that nobody vouches for to be refused, unless
// the registry is on this machine.
func TestPullTLS(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, _ := newFake(t, l)
	srv := httptest.NewUnstartedServer(fk)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the client that went away
	srv.StartTLS()
	defer srv.Close()
	repo := strings.TrimPrefix(srv.URL, "https://") + "/x"
	yes := true
	_, err := newStore(t).Pull(context.Background(), repo, PullOptions{TLSVerify: &yes})
	wantError(t, err, "certificate")
	if !strings.Contains(report.Hint(err), "certs.d") {
		t.Errorf("hint %q", report.Hint(err))
	}
	if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{}); err != nil {
		t.Error(err)
	}
	_, plain := newFake(t, l)
	_, err = newStore(t).Pull(context.Background(), plain, PullOptions{TLSVerify: &yes})
	wantError(t, err, "HTTP")
}

func TestPullAuth(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host, _, _ := strings.Cut(repo, "/")
	auth := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(auth, fmt.Appendf(nil, `{"auths":{%q:{"auth":"bWU6c2VjcmV0"}}}`, host), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{}); !strings.Contains(report.Hint(err), "auth.json") {
		t.Errorf("without credentials: %v, hint %q", err, report.Hint(err))
	}
	if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{AuthFile: auth}); err != nil {
		t.Error(err)
	}
}

func TestEnsure(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	ctx := context.Background()
	s := newStore(t)
	asked := func() bool {
		_, ok := fk.asked.LoadAndDelete("/v2/x/manifests/latest")
		return ok
	}

	_, err := s.Ensure(ctx, repo, Never, PullOptions{})
	if Reason(err) != ErrImageNeverPull || !strings.Contains(report.Hint(err), "podrun image load") || asked() {
		t.Errorf("Never without a copy: %v", err)
	}
	if _, err := s.Ensure(ctx, repo, IfNotPresent, PullOptions{}); err != nil || !asked() {
		t.Errorf("IfNotPresent without a copy: %v", err)
	}
	for policy, wantAsked := range map[string]bool{Never: false, IfNotPresent: false, Always: true} {
		if _, err := s.Ensure(ctx, repo, policy, PullOptions{}); err != nil || asked() != wantAsked {
			t.Errorf("%s with a copy: %v, or the registry was asked or not", policy, err)
		}
	}
	fk.edit = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	if _, err := s.Ensure(ctx, repo, Always, PullOptions{}); Reason(err) != ErrImagePull || !strings.Contains(report.Hint(err), "IfNotPresent") {
		t.Errorf("Always with a copy and a broken registry: %v, hint %q", err, report.Hint(err))
	}
	if _, err := s.Ensure(ctx, "localhost:1/y", IfNotPresent, PullOptions{}); Reason(err) != ErrImagePull || !strings.Contains(report.Hint(err), "podrun image load") {
		t.Errorf("no registry: %v", err)
	}
	if _, err := s.Ensure(ctx, "No Name", Always, PullOptions{}); Reason(err) != InvalidImageName {
		t.Errorf("bad name: %v", err)
	}
	if _, err := s.Ensure(ctx, repo, "Sometimes", PullOptions{}); err == nil {
		t.Error("a policy that is none was accepted")
	}
	img, err := s.Resolve(repo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(ctx, img.ID, Always, PullOptions{}); err != nil {
		t.Errorf("by id: %v", err)
	}
	if _, err := s.Pull(ctx, img.ID, PullOptions{}); Reason(err) != InvalidImageName {
		t.Errorf("pull by id: %v", err)
	}
}

// TestPullMovedTag pulls a tag that means another image by now.
func TestPullMovedTag(t *testing.T) {
	first := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "1"})}})
	second := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "2"})}})
	fk, repo := newFake(t, first)
	s := newStore(t)
	old, err := s.Pull(context.Background(), repo, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fk2, _ := newFake(t, second)
	fk.blobs = fk2.blobs
	moved, err := s.Pull(context.Background(), repo, PullOptions{})
	if err != nil || moved.ID == old.ID {
		t.Fatalf("%v, id %s before and %s now", err, old.ID, moved.ID)
	}
	if still, err := s.Resolve(old.ID); err != nil || still.Name != "" {
		t.Errorf("the old image: %+v, %v; want it without a name", still, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Errorf("List: %d, %v", len(list), err)
	}
}

// TestPullCancelled stops a pull in the middle of a layer.
func TestPullCancelled(t *testing.T) {
	testenv.NoLeaks(t)
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x", Content: strings.Repeat("x", 1<<20)})}})
	fk, repo := newFake(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	layer := largest(fk.blobs)
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, layer) {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(fk.blobs[layer])))
		w.Write(fk.blobs[layer][:1<<19])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		return true
	}
	s := newStore(t)
	if _, err := s.Pull(ctx, repo, PullOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("pull: %v", err)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
	http.DefaultClient.CloseIdleConnections()
}

func largest(blobs map[string][]byte) string {
	best := ""
	for name, b := range blobs {
		if len(b) > len(blobs[best]) && strings.HasPrefix(name, "blobs/") {
			best = name
		}
	}
	return best
}

func TestParseName(t *testing.T) {
	d := digest.FromString("x").String()
	for in, want := range map[string]string{
		"busybox":                     "docker.io/library/busybox:latest",
		"busybox:1.36":                "docker.io/library/busybox:1.36",
		"user/x":                      "docker.io/user/x:latest",
		"localhost/x:1":               "localhost/x:1",
		"localhost:5000/x":            "localhost:5000/x:latest",
		"quay.io/a/b/c:v1":            "quay.io/a/b/c:v1",
		"busybox@" + d:                "docker.io/library/busybox@" + d,
		"busybox:1.36@" + d:           "docker.io/library/busybox@" + d,
		"index.docker.io/library/x:1": "docker.io/library/x:1",
	} {
		got, err := parseName(in)
		if err != nil || got.String() != want {
			t.Errorf("parseName(%s) = %v, %v; want %s", in, got, err, want)
		}
	}
	for ref, want := range map[string]bool{
		"localhost/x": true, "localhost:5000/x": true, "127.0.0.1:5000/x": true, "127.9.9.9/x": true,
		"x": false, "10.0.0.1/x": false, "localhost.example.com/x": false,
	} {
		name, err := parseName(ref)
		if err != nil || loopback(name) != want {
			t.Errorf("loopback(%s) is %v, %v; want %v", ref, !want, err, want)
		}
	}
}
