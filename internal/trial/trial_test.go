package trial

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/testenv"
)

// The tests run outside of any namespace, as an ordinary user and as root.
func TestMain(m *testing.M) {
	stage.Main(Stages())
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
		if f.Name != names()[i] || f.Detail == "" || (f.Level == host.OK) != (f.Cure == "") {
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
	if len(findings) != 3 || !strings.HasPrefix(findings[0].Detail, "a pod has ") || !strings.HasSuffix(findings[0].Detail, "ids") {
		t.Errorf("got %+v", findings)
	}
	t.Logf("it took %v", took)
}

func TestNoDirectory(t *testing.T) {
	testenv.NoLeaks(t)
	for _, f := range Run(t.Context(), "/nosuch") {
		if f.Level != host.Warning || !strings.Contains(f.Detail, "not tried: make a directory to try it in: ") || f.Cure == "" {
			t.Errorf("got %+v", f)
		}
	}
}

// One that is ended leaves no process, no mount and no file.
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

func TestProbesShareOneTrial(t *testing.T) {
	n := 0
	findings := host.Run(Probes(t.Context(), func() (string, error) { n++; return "", errors.New("no home") }))
	if n != 1 || len(findings) != 3 {
		t.Fatalf("%d trials, %+v", n, findings)
	}
	for i, f := range findings {
		if f.Name != names()[i] || f.Level != host.Warning || f.Detail != "not tried: make a directory to try it in: no home" {
			t.Errorf("got %+v", f)
		}
	}
}

func TestRead(t *testing.T) {
	exited := exec.Command("false").Run()
	fine := `[{"name":"ids of pods","level":"ok","detail":"a","cure":""},{"name":"root file systems","level":"failure","detail":"b","cure":"c"},{"name":"sandbox","level":"ok","detail":"d","cure":""}]`
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
		if len(f) != 3 || f[0].Level != tt.level || !strings.Contains(f[0].Detail, tt.detail) || !strings.Contains(f[1].Detail, tt.second) || strings.Contains(f[0].Detail, "\n") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}
