package script

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/podrun/podrun/internal/scriptcmd"
	"github.com/podrun/podrun/internal/systemd/systemdtest"
	"github.com/podrun/podrun/test/internal/howto"
	"github.com/podrun/podrun/test/internal/standin"
)

// pageFleet is a workstation, a registry and four boxes, one of them a canary and one without a network, in directories of this machine.
type pageFleet struct {
	blocks       []howto.Block // of the page, which are to be done
	dir          string
	names        *strings.Replacer // from the names of the page
	workstation  *host
	boxes        []*box
	remote       *box // has no network
	stopRegistry func()
	reports      *httptest.Server

	mu       sync.Mutex
	reported []string
}

// A box is the user of a box with a service manager.
type box struct {
	*host
	name    string
	manager *systemdtest.Manager
	service []string // the command of its service
}

// TestFleetPage: the commands of the page lead from one box to many.
func TestFleetPage(t *testing.T) {
	t.Parallel()
	const applied, unchanged = "set/site applied", "set/site unchanged"
	f := startPageFleet(t)
	f.onWorkstation(t)
	f.writeFile(t, "site/web.yaml")
	f.writeFile(t, "site/visitor.yaml")
	f.onWorkstation(t)

	userData := f.next(t, "user-data")
	for i, b := range append(f.boxes, f.remote) {
		text := strings.Replace(userData, "kitchen", b.name, 1)
		if i == 0 {
			text = strings.Replace(text, "site:stable", "site:canary", 1)
		}
		f.firstStart(t, b, text)
	}
	f.look(t, applied, applied, applied)
	commands := f.next(t, "box")
	for _, b := range f.boxes {
		f.eventually(t, b, commands, "Status:   Ready", "version 1.0 in the "+b.name)
	}
	f.refusesUnsigned(t)

	f.onWorkstation(t)
	f.look(t, applied, unchanged, unchanged)
	f.eventually(t, f.boxes[0], f.next(t, "canary"), "1.1")
	f.eventually(t, f.boxes[0], "podrun logs deployment/visitor", "version 1.1 in the "+f.boxes[0].name)
	f.onWorkstation(t)
	f.look(t, unchanged, applied, applied)

	f.onWorkstation(t)
	f.look(t, "it is back at its former version", unchanged, unchanged, "--timeout", "3s")
	f.look(t, "is not tried again", unchanged, unchanged)
	status := f.eventually(t, f.boxes[0], f.next(t, "canary"), "RolledBack")
	status = regexp.MustCompile(`sha256:\w+`).ReplaceAllString(status, "sha256:…")
	status = regexp.MustCompile(`\d{4}-\d\d-\d\d.\d\d:\d\d:\d\dZ?`).ReplaceAllString(status, "…")
	if want := f.next(t, "output"); !strings.HasSuffix(status, "\n"+want) {
		t.Errorf("the page has\n%s\ninstead of\n%s", want, status)
	}
	want := append(slices.Repeat([]string{"Applied"}, 6), "Failed") // 1.0 and 1.1 on three boxes, 1.2 on the canary
	if f.mu.Lock(); !slices.Equal(f.reported, want) {
		t.Errorf("reported: %v, want %v", f.reported, want)
	}
	f.mu.Unlock()
	f.next(t, "prometheus")

	f.onWorkstation(t)
	f.stopRegistry()
	f.run(t, f.remote.host, f.remote.paths(strings.Replace(f.next(t, "remote"), "--once", "--once --stable 0s", 1)))
	f.eventually(t, f.remote, "podrun logs deployment/visitor", "version 1.3 in the "+f.remote.name)
	f.runService(t, f.remote, "connection refused")
	f.eventually(t, f.remote, "podrun follow status site", "Status:   Ready", " 1.3 made at")

	commands = strings.Replace(f.next(t, "node"), "podrun systemd", "XDG_RUNTIME_DIR=/run/user/1000 podrun systemd", 1)
	for _, b := range append(f.boxes, f.remote) {
		f.run(t, b.host, b.paths(commands))
		var left []string
		if !scriptcmd.Poll(func() bool { left = b.left(); return len(left) == 0 }) {
			t.Errorf("%s: left behind:\n%s", b.name, strings.Join(left, "\n"))
		}
	}
	for _, where := range []string{"cluster", "flux.yaml", "cluster", "workstation", "cluster"} { // TestFlux of test/cluster does them
		f.next(t, where)
	}
	if len(f.blocks) > 0 {
		t.Errorf("%s: the test does not do %q", howto.FleetPage, f.blocks)
	}
}

func startPageFleet(t *testing.T) *pageFleet {
	t.Helper()
	bin, rootfs := prepare(t)
	f := &pageFleet{blocks: howto.ReadFleet(t), dir: t.TempDir()}
	f.reports = httptest.NewServer(http.HandlerFunc(f.report))
	t.Cleanup(f.reports.Close)
	if err := standin.Copy(bin); err != nil {
		t.Fatal(err)
	}
	server, registry, err := startRegistry(f.dir, "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	f.stopRegistry = func() { server.Process.Kill(); server.Wait() }
	t.Cleanup(f.stopRegistry)
	stick := filepath.Join(f.dir, "stick")
	f.workstation = f.newHost(t, "workstation", bin, rootfs, registry)
	for _, name := range []string{"attic", "cellar", "garage", "shed"} {
		b := &box{host: f.newHost(t, name, bin, rootfs, registry), name: name}
		b.env = append(b.env, b.paths("CONTAINERS_POLICY_JSON=/etc/containers/policy.json"))
		b.manager = systemdtest.Start(t, b.paths("/run/user/1000"))
		f.boxes = append(f.boxes, b)
	}
	f.boxes, f.remote = f.boxes[:3], f.boxes[3]
	if err := os.Mkdir(stick, 0o755); err != nil {
		t.Fatal(err)
	}
	f.names = strings.NewReplacer("registry.example.org", registry, "docker.io", registry, "/media/stick", stick)
	f.pushBusybox(t, registry, rootfs)
	return f
}

// pushBusybox adds the image of the page to the registry, by an index for several architectures.
func (f *pageFleet) pushBusybox(t *testing.T, registry, rootfs string) {
	t.Helper()
	f.run(t, f.workstation, fmt.Sprintf("podrun image import %s %[2]s && podrun image push %[2]s >pushed", rootfs, registry+"/library/busybox:one"))
	pushed, err := os.ReadFile(filepath.Join(f.workstation.dir, "pushed"))
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(strings.TrimSpace(string(pushed)), "@")
	const manifestType, indexType = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
	ask := func(method, reference, mediaType, body string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+registry+"/v2/library/busybox/manifests/"+reference, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", mediaType)
		request.Header.Set("Content-Type", mediaType)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("%s %s: %s", method, reference, answer.Status)
		}
		return answer
	}
	size := ask(http.MethodHead, digest, manifestType, "").ContentLength
	ask(http.MethodPut, "1.37", indexType, fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "manifests": [{"mediaType": %q, "digest": %q, "size": %d, "platform": {"os": "linux", "architecture": %q}}]}`,
		indexType, manifestType, digest, size, runtime.GOARCH))
}

// newHost makes the directories of a host, for which the registry needs no TLS.
func (f *pageFleet) newHost(t *testing.T, name, bin, rootfs, registry string) *host {
	t.Helper()
	dir := filepath.Join(f.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := newHost(dir, bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	writeFile(t, filepath.Join(dir, "home/.config/containers/registries.conf"), fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", registry))
	return h
}

// paths replaces the paths of the page by those of the box. Its service manager has another runtime directory than its pods,
// which have no cgroup of their own, as in all tests of this package.
func (b *box) paths(text string) string {
	return strings.NewReplacer("/etc/", filepath.Join(b.dir, "etc")+"/", "/run/user/1000", filepath.Join(b.dir, "manager")).Replace(text)
}

// next returns the text of the next block of the page, with the names of the test.
func (f *pageFleet) next(t *testing.T, where string) string {
	t.Helper()
	if len(f.blocks) == 0 || f.blocks[0].Where != where {
		t.Fatalf("%s: the next block is not for %s: %q", howto.FleetPage, where, f.blocks)
	}
	text := f.names.Replace(f.blocks[0].Text())
	f.blocks = f.blocks[1:]
	return text
}

// onWorkstation does the next block on the workstation.
func (f *pageFleet) onWorkstation(t *testing.T) {
	t.Helper()
	f.run(t, f.workstation, f.next(t, "workstation"))
}

// writeFile writes the file that is the next block.
func (f *pageFleet) writeFile(t *testing.T, path string) {
	t.Helper()
	writeFile(t, filepath.Join(f.workstation.dir, path), f.next(t, path))
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shell returns a shell with commands on a host.
func (h *host) shell(commands string) *exec.Cmd {
	cmd := exec.Command("sh", "-exc", commands)
	cmd.Dir, cmd.Env = h.dir, h.env
	return cmd
}

// run runs commands, which must succeed.
func (f *pageFleet) run(t *testing.T, h *host, commands string) {
	t.Helper()
	out, err := h.shell(commands).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// eventually runs commands on a box until they succeed, and their output contains all words. It returns the output.
func (f *pageFleet) eventually(t *testing.T, b *box, commands string, words ...string) string {
	t.Helper()
	var out []byte
	if !scriptcmd.Poll(func() bool {
		var err error
		out, err = b.shell(commands).CombinedOutput()
		return err == nil && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(string(out), word) })
	}) {
		t.Fatalf("%s: %s never said %q, but:\n%s", b.name, commands, words, out)
	}
	return string(out)
}

// firstStart does what cloud-init does on a box, but for the installation of the package and the start of the user's
// service manager.
func (f *pageFleet) firstStart(t *testing.T, b *box, userData string) {
	t.Helper()
	var todo struct {
		Files    []struct{ Path, Content string } `json:"write_files"`
		Commands []string                         `json:"runcmd"`
	}
	if err := yaml.Unmarshal([]byte(b.paths(userData)), &todo); err != nil {
		t.Fatal(err)
	}
	for _, file := range todo.Files {
		if filepath.Base(file.Path) == "cosign.pub" {
			public, err := os.ReadFile(filepath.Join(f.workstation.dir, "cosign.pub"))
			if err != nil {
				t.Fatal(err)
			}
			file.Content = string(public)
		}
		writeFile(t, file.Path, file.Content)
	}
	for _, command := range todo.Commands {
		switch program, _, _ := strings.Cut(command, " "); program {
		case "apt", "loginctl", "systemctl":
		case "runuser":
			_, command, _ = strings.Cut(command, "-c ")
			f.run(t, b.host, b.paths("XDG_RUNTIME_DIR=/run/user/1000 sh -c ")+command)
		default:
			t.Fatalf("%s: the test does not know the command %s", howto.FleetPage, command)
		}
	}
	if calls := b.manager.Calls(); !strings.Contains(calls, "StartUnit podrun-follow-site.timer\n") || !strings.HasSuffix(calls, "StartUnit podrun-follow-site.service") {
		t.Errorf("the service manager is asked:\n%s", calls)
	}
	unit, err := os.ReadFile(filepath.Join(b.dir, "home/.config/systemd/user/podrun-follow-site.service"))
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(unit), "\nExecStart=")
	command, _, _ = strings.Cut(command, "\n")
	b.service = strings.Fields(command)
}

// look does what the timers of the three boxes do: each runs its service, with more options. The output of each must contain its word.
func (f *pageFleet) look(t *testing.T, attic, cellar, garage string, options ...string) {
	t.Helper()
	var all sync.WaitGroup
	for i, want := range []string{attic, cellar, garage} {
		all.Go(func() { f.runService(t, f.boxes[i], want, options...) })
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
}

// runService runs the command of a box's service, with more options. Its output must contain a word.
func (f *pageFleet) runService(t *testing.T, b *box, want string, options ...string) {
	t.Helper()
	args := slices.Concat(b.service[1:3], []string{"--stable", "0s", "--report", f.reports.URL}, options, b.service[3:])
	cmd := exec.Command(b.service[0], args...)
	cmd.Env = b.env
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), want) {
		t.Errorf("%s: %q did not say %q, but:\n%s", b.name, args, want, out)
	}
}

// report receives a report of a box.
func (f *pageFleet) report(w http.ResponseWriter, r *http.Request) {
	var event struct{ Reason string }
	_ = json.NewDecoder(r.Body).Decode(&event)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reported = append(f.reported, event.Reason)
}

// refusesUnsigned: a set without a signature is not for the boxes.
func (f *pageFleet) refusesUnsigned(t *testing.T) {
	t.Helper()
	unsigned := f.names.Replace("oci://registry.example.org/site:unsigned")
	f.run(t, f.workstation, "podrun image push site/ "+unsigned+" --revision unsigned")
	out, err := f.boxes[0].shell("podrun validate " + unsigned).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "A signature was required, but no signature exists") {
		t.Errorf("a set without a signature: %v\n%s", err, out)
	}
}
