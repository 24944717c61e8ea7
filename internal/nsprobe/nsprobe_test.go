package nsprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

// The tests run outside any namespace, as an ordinary user and as root.
func TestMain(m *testing.M) {
	entryPoints := EntryPoints()
	entryPoints["_hang"] = hang
	reexec.Main(entryPoints)
	testenv.MainOutside(m)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOnThisHost(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	start := time.Now()
	findings := Run(t.Context(), dir)
	took := time.Since(start)
	empty(t, dir)
	for i, f := range findings {
		if f.Name != names()[i] || f.Detail == "" || (f.Level == host.OK) != (f.Hint == "") {
			t.Errorf("finding %d: %+v", i, f)
		}
		if f.Name != host.MappedIDs {
			testenv.Need(t, func() error { // a build machine may be a container that cannot
				if f.Level != host.OK {
					return errors.New(f.Detail)
				}
				return nil
			})
		}
	}
	testenv.Need(t, testenv.IDs)
	if len(findings) != 4 || !strings.HasPrefix(findings[0].Detail, "a pod has ") || !strings.HasSuffix(findings[0].Detail, "ids") {
		t.Errorf("got %+v", findings)
	}
	t.Logf("it took %v", took)
}

func TestNoDirectory(t *testing.T) {
	testenv.NoLeaks(t)
	for _, f := range Run(t.Context(), "/nosuch") {
		if f.Level != host.Warning || !strings.Contains(f.Detail, "not tried: make a directory for the probe: ") || f.Hint == "" {
			t.Errorf("got %+v", f)
		}
	}
}

// An interrupted run leaves no process, no mount and no file.
func TestEnded(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 12 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		for _, f := range Run(ctx, dir) {
			if f.Level != host.OK && !strings.Contains(f.Detail, "no answer in time") {
				t.Errorf("after %v: %+v", after, f)
			}
		}
		cancel()
		empty(t, dir)
	}
}

func TestProbesShareOneTestPod(t *testing.T) {
	n := 0
	var findings []host.Finding
	for _, p := range Probes(t.Context(), func() (string, error) { n++; return "", errors.New("no home") }) {
		findings = append(findings, p.Run())
	}
	if n != 1 || len(findings) != len(names()) {
		t.Fatalf("%d trials, %+v", n, findings)
	}
	for i, f := range findings {
		if f.Name != names()[i] || f.Level != host.Warning || f.Detail != "not tried: make a directory for the probe: no home" {
			t.Errorf("got %+v", f)
		}
	}
}

func TestRead(t *testing.T) {
	exited := exec.Command("false").Run()
	fine := `[{"name":"ids of pods","level":"ok","detail":"a","hint":""},{"name":"root file systems","level":"failure","detail":"b","hint":"c"},{"name":"network","level":"ok","detail":"n","hint":""},{"name":"sandbox","level":"ok","detail":"d","hint":""}]`
	for name, tt := range map[string]struct {
		said, complaint string
		ended           error
		level           host.Level // of the first finding
		detail          string     // of the first, or a part of it
		second          string
	}{
		"all is said": {fine, "", nil, host.OK, "a", "b"},
		"newuidmap refuses": {"", "newuidmap: uid range [1-65537) -> [100000-165536) not allowed\nmap the subordinate ids: newuidmap or newgidmap failed\n", exited,
			host.Failure, "the ids of pods cannot be mapped: newuidmap: uid range [1-65537) -> [100000-165536) not allowed map the subordinate ids", "not tried: there is no user namespace"},
		"no user namespace": {"", "make a user namespace: Operation not permitted\n", exited, host.Warning, "not tried: there is no user namespace", "not tried"},
		"no mounts":         {"", "make a mount namespace: Operation not permitted\n", exited, host.Warning, "not tried: there is no user namespace", "not tried"},
		"rubbish":           {"[{", "", nil, host.Warning, "not tried: it ended with", "not tried"},
		"too few":           {"[]", "", nil, host.Warning, "not tried: it ended with", "not tried"},
		"it crashed":        {"", "", exited, host.Warning, "not tried: it ended with exit status 1", "not tried"},
	} {
		f := read([]byte(tt.said), tt.complaint, tt.ended)
		if len(f) != len(names()) || f[0].Level != tt.level || !strings.Contains(f[0].Detail, tt.detail) || !strings.Contains(f[1].Detail, tt.second) || strings.Contains(f[0].Detail, "\n") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

// hang is an entry point in namespaces of its own. It mounts a file system on dir that never
// answers, like NFS with an unreachable server; then it gets the findings about podrun's
// directories in there.
func hang(args []string) int {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("hung", args[0], "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	setup := host.Setup{Data: args[0] + "/podrun", Runtime: "/tmp/podrun", Timeout: 500 * time.Millisecond}
	place := func() (string, error) { _, err := os.Stat(setup.Data); return setup.Data, err }
	json.NewEncoder(os.Stdout).Encode(host.Check(setup, Probes(context.Background(), place)...))
	return 0
}

// A hanging file system is named, delays no other probe, and prevents pods.
func TestAFileSystemThatHangs(t *testing.T) {
	if os.Getuid() != 0 {
		return // only root can always open /dev/fuse, and root's run does
	}
	testenv.Need(t, func() error { return unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) })
	cmd := reexec.Command(reexec.Spec{Name: "_hang", Args: []string{t.TempDir()}, Userns: true})
	cmd.Stderr = os.Stderr
	timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.Output()
	var findings []host.Finding
	if err := errors.Join(err, json.Unmarshal(out, &findings)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, level := range map[string]host.Level{
		"data directory": host.Failure, "disk space": host.Warning, "inodes": host.Warning, host.Overlay: host.Warning, "memory": host.OK, "clock": "",
	} {
		f, _ := host.FindByName(findings, name)
		silent := f.Detail == "no answer about the "+name+" within 500ms"
		if level != "" && f.Level != level || silent != (level == host.Failure || level == host.Warning) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if err := host.FirstFailure(findings); err == nil || !strings.Contains(err.Error(), "no answer about the data directory within") {
		t.Errorf("refusal: %v", err)
	}
}

// Groups from outside the user namespace are kept, and the finding reports that.
func TestKeptGroups(t *testing.T) {
	for name, groups := range map[string][]int{"none": nil, "its own": {0}, "another": {0, 65534}} {
		if got := keptGroups(groups, nil) != ""; got != (name == "another") {
			t.Errorf("%s: reported: %t", name, got)
		}
	}
	if keptGroups(nil, unix.EIO) == "" {
		t.Error("groups that cannot be read are not reported")
	}
}
