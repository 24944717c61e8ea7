package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// registry starts a registry on this machine and sets $REGISTRY to its address. With HTPASSWD it
// requires a user of that file. Its access log is registry.log.
func registry(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 0, "registry [HTPASSWD]")
	htpasswd := ""
	if len(args) > 0 {
		htpasswd = ts.MkAbs(args[0])
	}
	cmd, address, err := startRegistry(ts.MkAbs("."), "127.0.0.1:0", htpasswd)
	ts.Check(err)
	ts.Defer(func() { cmd.Process.Kill(); cmd.Wait() })
	ts.Setenv("REGISTRY", address)
}

// startRegistry starts a registry whose files and log are in a directory, and returns its address. Port 0 is a free one.
func startRegistry(dir, address, htpasswd string) (*exec.Cmd, string, error) {
	probe, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	address = probe.Addr().String()
	probe.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n",
		filepath.Join(dir, "registry"), address)
	if htpasswd != "" {
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", htpasswd)
	}
	if err := os.WriteFile(filepath.Join(dir, "registry.yml"), []byte(config), 0o600); err != nil {
		return nil, "", err
	}
	cmd := exec.Command("docker-registry", "serve", filepath.Join(dir, "registry.yml"))
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "OTEL_") })
	cmd.Env = append(cmd.Env, "OTEL_TRACES_EXPORTER=none")
	log, err := os.OpenFile(filepath.Join(dir, "registry.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	cmd.Stdout = log
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	if !scriptcmd.Poll(func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}) {
		cmd.Process.Kill()
		return nil, "", fmt.Errorf("the registry does not listen on %s: %w", address, cmd.Wait())
	}
	return cmd, address, nil
}

// remote is a registry behind a link, and a client that pushes what no command of podrun makes.
type remote struct {
	dir     string // of its files
	link    *link
	server  *exec.Cmd
	address string // of the link
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{dir: t.TempDir()}
	var behind string
	var err error
	if r.server, behind, err = startRegistry(r.dir, "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	r.link = newLink(t, behind)
	r.address = r.link.listener.Addr().String()
	return r
}

// kill ends the registry without a chance to finish an answer.
func (r *remote) kill() {
	r.server.Process.Kill()
	r.server.Wait()
}

// restart starts a registry that was killed.
func (r *remote) restart(t *testing.T) {
	t.Helper()
	var err error
	if r.server, _, err = startRegistry(r.dir, r.link.to, ""); err != nil {
		t.Fatal(err)
	}
}

// request is a line of the registry's log: method, path, and status of the answer.
type request struct{ what, status string }

// requests returns the requests of boxes since the log had a size.
func (r *remote) requests(t *testing.T, since int64) (list []request) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "registry.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text[since:])) {
		fields := strings.Split(line, `"`) // host - - [date] "METHOD PATH HTTP/1.1" status size "referer" "agent"
		if len(fields) < 6 || fields[5] != "podrun" {
			continue
		}
		list = append(list, request{strings.TrimSuffix(fields[1], " HTTP/1.1"), strings.Fields(fields[2])[0]})
	}
	return list
}

// logged returns the size of the registry's log.
func (r *remote) logged(t *testing.T) int64 {
	t.Helper()
	st, err := os.Stat(filepath.Join(r.dir, "registry.log"))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// descriptor describes a blob, or a manifest.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int               `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

func describe(mediaType string, content []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content)), Size: len(content)}
}

// blob pushes a blob.
func (r *remote) blob(t *testing.T, repository, mediaType string, content []byte) descriptor {
	t.Helper()
	d := describe(mediaType, content)
	begun := r.send(t, http.MethodPost, r.url(repository, "blobs/uploads/"), "", nil)
	r.send(t, http.MethodPut, begun.Get("Location")+"&digest="+d.Digest, "application/octet-stream", content)
	return d
}

// manifest pushes a manifest under a tag.
func (r *remote) manifest(t *testing.T, repository, tag, mediaType string, m map[string]any) descriptor {
	t.Helper()
	m["schemaVersion"], m["mediaType"] = 2, mediaType
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r.send(t, http.MethodPut, r.url(repository, "manifests/"+tag), mediaType, text)
	return describe(mediaType, text)
}

func (r *remote) url(repository, rest string) string {
	return "http://" + r.link.to + "/v2/" + repository + "/" + rest
}

// send sends a request, and returns the headers of the answer.
func (r *remote) send(t *testing.T, method, url, mediaType string, body []byte) http.Header {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", mediaType)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %s", method, url, answer.Status, text)
	}
	return answer.Header
}

// link forwards TCP connections to a registry.
type link struct {
	listener net.Listener
	to       string
	most     atomic.Int64 // how many bytes a connection returns before it is cut; 0: any number
	onCut    atomic.Value // a func() that is called before a connection is cut
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l := &link{to: to}
	l.onCut.Store(func() {})
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.forward(c) })
		}
	})
	return l
}

func (l *link) forward(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		io.Copy(up, c)
		up.(*net.TCPConn).CloseWrite()
	}()
	most := l.most.Load()
	if most == 0 {
		io.Copy(c, up)
		return
	}
	if n, _ := io.CopyN(c, up, most); n == most {
		l.onCut.Load().(func())()
	}
}
