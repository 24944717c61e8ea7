package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/cmd/ui"
	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

func TestUIListensHereAlone(t *testing.T) {
	h := clitest.NewHost(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := h.File("no socket")
	const ssh = "hint: from another machine use ssh: ssh -L 7633:127.0.0.1:7633 HOST podrun ui\n"
	const help = "hint: podrun ui --help\n"
	here := func(a string) string {
		return "podrun: --address cannot be " + a + ": the page is for this machine only: use 127.0.0.1 or ::1\n" + ssh
	}
	for name, tc := range map[string]struct {
		args string
		code int
		err  string
	}{
		"everywhere":        {"--address 0.0.0.0", 2, here("0.0.0.0")},
		"everywhere, IPv6":  {"--address ::", 2, here("::")},
		"another machine's": {"--address 192.168.1.5", 2, here("192.168.1.5")},
		"a zone":            {"--address ::1%lo", 2, here("::1%lo")},
		"a name":            {"--address box.example", 2, "podrun: --address cannot be \"box.example\": use 127.0.0.1 or ::1\n" + help},
		"nothing":           {"--address=", 2, "podrun: --address cannot be \"\": use 127.0.0.1 or ::1\n" + help},
		"no port":           {"--port 65536", 2, "podrun: --port cannot be 65536: use 0 to 65535\n" + help},
		"less than a port":  {"--port=-1", 2, "podrun: --port cannot be -1: use 0 to 65535\n" + help},
		"a taken port": {fmt.Sprintf("--port %d", taken.Addr().(*net.TCPAddr).Port), 1,
			fmt.Sprintf("podrun: cannot serve the page: listen tcp %s: bind: address already in use\nhint: --port 0 uses a free port; ss -ltnp shows which process uses this one\n", taken.Addr())},
		"words":             {"web", 2, "podrun: ui accepts no arguments: the page shows all pods\n" + help},
		"both":              {"--socket x --port 1", 2, "podrun: --socket cannot be used with --address or --port\n" + help},
		"no path":           {"--socket=", 2, "podrun: --socket requires the path of a socket\n" + help},
		"no socket":         {"--socket " + file, 1, "podrun: cannot serve the page at " + file + ": it is not a socket\nhint: choose a path that does not exist\n"},
		"no such directory": {"--socket /nosuch/x", 1, "podrun: cannot serve the page: listen unix /nosuch/x: bind: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			clitest.CheckResult(t, h.Run(append([]string{"ui"}, strings.Fields(tc.args)...)...), tc.code, "", tc.err)
		})
	}
}

// visit begins podrun ui, and gives what asks its API.
func visit(h *clitest.Host, dial func(ctx context.Context, network, address string) (net.Conn, error), args ...string) (*clitest.Process, func(path string) *bufio.Reader) {
	h.T.Helper()
	p := h.Begin("", append([]string{"ui"}, args...)...)
	h.T.Cleanup(func() {
		p.Signals <- syscall.SIGTERM
		if got := p.Wait(); got.Code != 0 {
			h.T.Errorf("ui ends with %+v", got)
		}
	})
	p.WaitOutput("\n")
	p.WaitOutput("#token=")
	address, token, _ := strings.Cut(strings.TrimSpace(p.Out.String()), "/#token=")
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return p, func(path string) *bufio.Reader {
		h.T.Helper()
		ctx, cancel := context.WithTimeout(h.T.Context(), clitest.Timeout)
		h.T.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, "GET", address+path, nil)
		if err != nil {
			h.T.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			h.T.Fatal(err)
		}
		h.T.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode != http.StatusOK {
			h.T.Fatalf("%s: %s", path, answer.Status)
		}
		return bufio.NewReader(answer.Body)
	}
}

// readUntil reads a stream until enough returns true for a message.
func readUntil[T any](t *testing.T, stream *bufio.Reader, what string, enough func(T) bool) {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("never: %s: %v", what, err)
		}
		var m T
		if text, ok := strings.CutPrefix(line, "data: "); !ok {
			continue
		} else if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if enough(m) {
			return
		}
	}
}

// pageState is what of the state these tests look at.
type pageState struct{ Objects pageObjects }

type pageObjects struct {
	Pods struct {
		Keys    []string
		Changed map[string]struct {
			Ready, Status, Restarts string
			Object                  struct{ Status struct{ Phase string } }
		}
	}
	Events struct {
		Changed map[string]struct{ Reason, Message string }
	}
	Tables struct {
		Changed map[string]struct{ Columns []string }
	}
	Service, Deployment, Job, PersistentVolume, Images, Sets *pageRows
}

// pageRows are rows of a table.
type pageRows struct {
	Keys    []string
	Changed map[string]struct {
		Cells  []string
		Since  map[string]time.Time
		Labels map[string]string
	}
}

// noPods reports whether a first message has the tables and no pods.
func (s pageState) noPods() bool {
	return len(s.Objects.Tables.Changed) > 0 && len(s.Objects.Pods.Keys) == 0
}

func (s pageState) status(key string) string {
	p := s.Objects.Pods.Changed[key]
	return fmt.Sprintf("%s %s %s %s", p.Ready, p.Status, p.Restarts, p.Object.Status.Phase)
}

func TestUIShowsWhatChanges(t *testing.T) {
	h := clitest.NewHost(t)
	_, ask := visit(h, nil, "--port", "0", "--address", "localhost")
	state := ask("/api/state")
	readUntil(t, state, "there are no pods", pageState.noPods)
	s := h.UpDetached(clitest.OneContainer, nil)
	readUntil(t, state, "a pod comes", func(s pageState) bool { return s.status("default/web") == "1/1 Running 0 Running" })

	if err := s.Pod.WriteEvents(&pod.EventLog{Events: []pod.Event{{Type: "Normal", Reason: "Started", Message: "Container started", Count: 1, First: time.Now(), Last: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	readUntil(t, state, "an event comes", func(s pageState) bool {
		for _, e := range s.Objects.Events.Changed {
			if e.Reason == "Started" && e.Message == "Container started" {
				return true
			}
		}
		return false
	})
	crash := clitest.WaitingContainer("app", "CrashLoopBackOff", "")
	crash.RestartCount = 2
	s.Publish(clitest.Status(pod.Running, crash))
	readUntil(t, state, "a status changes", func(s pageState) bool { return s.status("default/web") == "0/1 CrashLoopBackOff 2 Running" })
	s.Kill() // of which no file tells
	readUntil(t, state, "a pod is killed", func(s pageState) bool { return strings.HasSuffix(s.status("default/web"), " Failed") })
	if got := h.Run("down", "web"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	readUntil(t, state, "a pod goes", func(s pageState) bool {
		return s.Objects.Pods.Keys != nil && !slices.Contains(s.Objects.Pods.Keys, "default/web")
	})
}

// TestUIShowsTables compares the rows of objects with what get prints.
func TestUIShowsTables(t *testing.T) {
	h := clitest.NewHost(t)
	_, ask := visit(h, nil, "--port", "0")
	state := ask("/api/state")
	row := func(rows *pageRows, key string) string {
		if rows == nil {
			return ""
		}
		return strings.Join(rows.Changed[key].Cells, "|")
	}
	readUntil(t, state, "the columns of all kinds", func(s pageState) bool {
		return len(s.Objects.Tables.Changed) == 11 && strings.Join(s.Objects.Tables.Changed["Deployment"].Columns, "|") == "NAMESPACE|NAME|READY|UP-TO-DATE|AVAILABLE|AGE" &&
			strings.Join(s.Objects.Tables.Changed["images"].Columns, "|") == "NAME|ID|ADDED|SIZE"
	})
	service := h.File("apiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {app: shop}}\nspec: {clusterIP: None, ports: [{port: 80}]}\n")
	apply := func(file string) {
		t.Helper()
		if got := h.Run("apply", "-f", file); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	apply(service)
	readUntil(t, state, "a Service comes", func(s pageState) bool {
		return row(s.Objects.Service, "default/web") == "default|web|ClusterIP|None||80/TCP|" && s.Objects.Service.Changed["default/web"].Labels["app"] == "shop" &&
			!s.Objects.Service.Changed["default/web"].Since["AGE"].IsZero()
	})
	apply(h.File("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}}\n"))
	readUntil(t, state, "a PersistentVolume comes", func(s pageState) bool {
		return row(s.Objects.PersistentVolume, "/disk") == "disk|1Gi|RWO|Retain|Available|||<unset>||"
	})
	for query, words := range map[string]string{"kind=Service&key=default/web": "service web", "kind=PersistentVolume&key=/disk": "pv disk"} {
		want := h.Run(append([]string{"get", "-o", "yaml"}, strings.Fields(words)...)...)
		got, err := io.ReadAll(ask("/api/yaml?" + query))
		if err != nil || string(got) != want.Out || want.Code != 0 {
			t.Errorf("%s: %s, %v, instead of\n%+v", query, got, err, want)
		}
	}
	if got := h.Run("delete", "-f", service); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	readUntil(t, state, "a Service goes", func(s pageState) bool { return s.Objects.Service != nil && len(s.Objects.Service.Keys) == 0 })
}

// TestUIShowsSets: sets have a table when there are any, which follows their records.
func TestUIShowsSets(t *testing.T) {
	h := clitest.NewHost(t)
	_, ask := visit(h, nil, "--port", "0")
	state := ask("/api/state")
	readUntil(t, state, "no table of sets", func(s pageState) bool {
		if _, ok := s.Objects.Tables.Changed["sets"]; ok {
			t.Error("there is a table of sets without sets")
		}
		return s.noPods()
	})
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	set := &store.Set{
		Source: "oci://registry.example.org/team/shop:1", State: store.SetSettled, Current: &store.SetVersion{Digest: "sha256:0123456789abcdef", Version: "1.0"},
		History: []store.SetChange{{At: at, Result: store.SetApplied, Digest: "sha256:0123456789abcdef"}},
	}
	put := func() {
		t.Helper()
		if err := h.Dirs.WriteSet("shop", set); err != nil {
			t.Fatal(err)
		}
	}
	row := func(s pageState) string {
		if s.Objects.Sets == nil {
			return ""
		}
		return strings.Join(s.Objects.Sets.Changed["shop"].Cells, "|")
	}
	put()
	columns := ""
	readUntil(t, state, "a set comes", func(s pageState) bool {
		columns += strings.Join(s.Objects.Tables.Changed["sets"].Columns, "|")
		return row(s) == "shop|Ready|1.0|sha256:0123456789ab||oci://registry.example.org/team/shop:1|" && s.Objects.Sets.Changed["shop"].Since["CHANGED"].Equal(at)
	})
	if columns != "NAME|STATUS|VERSION|DIGEST|CHANGED|SOURCE|LAST FAILURE" {
		t.Errorf("the columns are %s", columns)
	}
	set.History = append(set.History, store.SetChange{At: at, Result: store.SetFailed, Version: "1.1", Reason: "pod web is not ready"})
	put()
	readUntil(t, state, "a change fails", func(s pageState) bool {
		return row(s) == "shop|RolledBack|1.0|sha256:0123456789ab||oci://registry.example.org/team/shop:1|1.1: pod web is not ready"
	})
	if err := h.Dirs.RemoveSet("shop"); err != nil {
		t.Fatal(err)
	}
	readUntil(t, state, "a set goes", func(s pageState) bool { return s.Objects.Sets != nil && len(s.Objects.Sets.Keys) == 0 })
}

// TestUIConnectsToNoSupervisor checks that the page does not wake hibernating supervisors.
func TestUIConnectsToNoSupervisor(t *testing.T) {
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, func(s *clitest.Supervisor) { s.Log("app", 0, "stdout F here") })
	s.Listener.Close() // and another takes its place, which tells
	var asked atomic.Int32
	l, err := s.Pod.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			asked.Add(1)
			conn.Close()
		}
	}()
	_, ask := visit(h, nil, "--port", "0")
	state, logs := ask("/api/state"), ask("/api/logs?namespace=default&pod=web")
	readUntil(t, logs, "a line", func(m pageLines) bool { return strings.Contains(fmt.Sprint(m.Lines), "here") })
	readUntil(t, state, "what is used, twice", func(m struct{ Use []any }) bool { return m.Use != nil })
	readUntil(t, state, "what is used, twice", func(m struct{ Use []any }) bool { return m.Use != nil })
	s.Log("app", 0, "stdout F there")
	readUntil(t, logs, "another line", func(m pageLines) bool { return strings.Contains(fmt.Sprint(m.Lines), "there") })
	s.Publish(clitest.Status(pod.Running, clitest.TerminatedContainer("app", 1, "Error", "")))
	readUntil(t, state, "another status", func(s pageState) bool { return strings.Contains(s.status("default/web"), "Error") })
	if n := asked.Load(); n > 0 {
		t.Errorf("the supervisor was asked %d times", n)
	}
}

// pageLines are a message of logs.
type pageLines struct {
	Lines [][4]string
	End   bool
	Error string
}

func TestUILogs(t *testing.T) {
	h := clitest.NewHost(t)
	long := strings.Repeat("x", ui.MaxPageLine)
	s := h.UpDetached(clitest.ThreeContainers, func(s *clitest.Supervisor) {
		s.Log("prepare", 0, "stdout F prepared")
		s.Log("app", 0, "stdout F first life")
		s.Log("app", 1, "stdout F one", "stderr P two ", "stderr F halves", "stdout F \x1b[31mred\x1b[0m\x1b]0;title\x07\xff", "stdout P "+long, "stdout F 23", "stdout P no newline")
	})
	app := clitest.RunningContainer("app")
	app.RestartCount = 1
	app.LastState.Terminated = &pod.Terminated{ExitCode: 1, Reason: "Error"}
	st := clitest.Status(pod.Running, app, clitest.WaitingContainer("log-shipper", "ContainerCreating", ""))
	st.InitContainers = []pod.ContainerStatus{clitest.TerminatedContainer("prepare", 0, "Completed", "")}
	s.Publish(st)
	_, ask := visit(h, nil, "--port", "0")
	all := func(query string) (lines []string, failed string) {
		readUntil(t, ask("/api/logs?namespace=default&"+query), "the end of "+query, func(m pageLines) bool {
			for _, l := range m.Lines {
				lines = append(lines, l[0]+" "+l[2]+" "+l[3])
			}
			failed = m.Error
			return m.End
		})
		return lines, failed
	}
	for query, want := range map[string]string{
		"pod=web&container=prepare":            `["prepare stdout prepared"] `,
		"pod=web&container=app&previous=1":     `["app stdout first life"] `,
		"pod=web&container=prepare&previous=1": `[] there was no earlier instance of prepare`,
		"pod=web&container=nosuch":             `[] container "nosuch" not found in pod "web"`,
		"pod=nosuch":                           `[] pod "nosuch" not found`,
		"pod=..":                               `[] pod ".." not found`,
		"pod=":                                 `[] pod "" not found`,
	} {
		lines, failed := all(query)
		if got := fmt.Sprintf("%q %s", lines, failed); got != want {
			t.Errorf("%s: %s instead of %s", query, got, want)
		}
	}
	follows := ask("/api/logs?namespace=default&pod=web&tail=4") // of each container
	s.Log("app", 1, "stdout F  that ends")
	s.End(clitest.Status(pod.Succeeded, clitest.TerminatedContainer("app", 0, "Completed", "")))
	var got []string
	readUntil(t, follows, "the end of the pod", func(m pageLines) bool {
		for _, l := range m.Lines {
			got = append(got, l[0]+" "+l[3])
		}
		return m.End
	})
	want := []string{"prepare prepared", "app two halves", `app red\u001b]0;title\u0007\xff`, "app " + long + " … and 2 bytes more", "app no newline that ends"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestUISocket(t *testing.T) {
	h := clitest.NewHost(t)
	path := filepath.Join(h.Env["HOME"], "ui.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()      // as a command that was killed leaves it
	t.Cleanup(func() { // after the command has ended
		if _, err := os.Lstat(path); err == nil {
			t.Error("the socket is left behind")
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	p, ask := visit(h, dial, "--socket", path)
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v: %v", st.Mode(), err)
	}
	if !strings.Contains(p.Err.String(), "ssh -L 7633:"+path+" HOST") {
		t.Errorf("it says %s", p.Err.String())
	}
	readUntil(t, ask("/api/state"), "there are no pods", pageState.noPods)
	clitest.CheckResult(t, h.Run("ui", "--socket", path), 1, "", "podrun: cannot serve the page at "+path+": another process listens on it\nhint: choose another path, or use the page that the process serves\n")
}
