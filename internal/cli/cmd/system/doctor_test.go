package system_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/cli/cmd/system"
	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
)

func everyLevel() []host.Finding {
	return []host.Finding{
		{Name: "kernel", Level: host.OK, Detail: "Linux 6.1.0 aarch64"},
		{Name: host.UserNamespaces, Level: host.Failure, Detail: "AppArmor restricts them", Hint: `as root: printf 'profile podrun {\n}\n' > /etc/apparmor.d/podrun`},
		{Name: "runtime directory", Level: host.Note, Detail: "/tmp/\x1b[2J is on ext4", Hint: "export XDG_RUNTIME_DIR=/run/user/1000"},
		{Name: host.Limits, Level: host.Warning, Detail: "limits are not enforced: this host uses cgroup v1", Hint: "boot with cgroup v2"},
	}
}

func TestDoctor(t *testing.T) {
	h := clitest.NewHost(t)
	h.Findings = everyLevel()
	for name, tc := range map[string]struct {
		args   []string
		env    map[string]string
		golden string
	}{
		"plain":              {[]string{"doctor"}, nil, "doctor.golden"},
		"no colour":          {[]string{"doctor"}, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, "doctor.golden"},
		"colour":             {[]string{"doctor"}, map[string]string{"CLICOLOR_FORCE": "1"}, "doctor-colour.golden"},
		"JSON":               {[]string{"doctor", "-o", "json"}, nil, "doctor.json"},
		"JSON has no colour": {[]string{"doctor", "--output=json"}, map[string]string{"CLICOLOR_FORCE": "1"}, "doctor.json"},
	} {
		t.Run(name, func(t *testing.T) {
			old := h.Env
			defer func() { h.Env = old }()
			h.Env = map[string]string{"HOME": old["HOME"], "XDG_RUNTIME_DIR": old["XDG_RUNTIME_DIR"], "TERM": "xterm"}
			for k, v := range tc.env {
				h.Env[k] = v
			}
			got := h.Run(tc.args...)
			golden.Check(t, filepath.Join("testdata", tc.golden), got.Out)
			if got.Code != exitcode.Internal || got.Err != "" {
				t.Errorf("code %d, said %q", got.Code, got.Err)
			}
		})
	}
}

func TestDoctorsVerdict(t *testing.T) {
	ok := host.Finding{Name: "a", Level: host.OK, Detail: "d"}
	for level, want := range map[host.Level]struct {
		code    int
		summary string
	}{
		host.OK:      {0, "pods can run here: 0 failures, 0 warnings, 0 notes, 2 ok"},
		host.Note:    {0, "pods can run here: 0 failures, 0 warnings, 1 note, 1 ok"},
		host.Warning: {0, "pods can run here: 0 failures, 1 warning, 0 notes, 1 ok"},
		host.Failure: {125, "no pod can run here: 1 failure, 0 warnings, 0 notes, 1 ok"},
	} {
		h := clitest.NewHost(t)
		h.Findings = []host.Finding{ok, {Name: "b", Level: level, Detail: "d", Hint: "c"}}
		got := h.Run("doctor")
		lines := strings.Split(strings.TrimSpace(got.Out), "\n")
		if got.Code != want.code || lines[len(lines)-1] != want.summary {
			t.Errorf("%s: code %d, %q", level, got.Code, got.Out)
		}
		var d system.Diagnosis
		got = h.Run("doctor", "-o", "json")
		if err := json.Unmarshal([]byte(got.Out), &d); err != nil || got.Code != want.code || d.CanRun != (want.code == 0) || d.Summary != want.summary {
			t.Errorf("%s: code %d, %v, %+v", level, got.Code, err, d)
		}
		if diff := cmp.Diff(h.Findings, d.Probes); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDoctorsUsage(t *testing.T) {
	h := clitest.NewHost(t)
	clitest.CheckResult(t, h.Run("doctor", "web"), 2, "", "podrun: doctor accepts no arguments\nhint: podrun doctor --help\n")
	clitest.CheckResult(t, h.Run("doctor", "-o", "yaml"), 2, "", "podrun: unknown output format \"yaml\": use json\nhint: podrun doctor --help\n")
}

// TestDoctorInterrupted checks that Ctrl-C ends the probes, and that nothing is printed.
func TestDoctorInterrupted(t *testing.T) {
	h := clitest.NewHost(t)
	h.Hangs = make(chan struct{})
	p := h.Begin("", "doctor")
	<-h.Hangs
	p.Signals <- syscall.SIGINT
	clitest.CheckResult(t, p.Wait(), 130, "", "")
}

// TestUpFailsOnNsprobeFinding checks that up fails with doctor's finding before it creates files of the pod.
func TestUpFailsOnNsprobeFinding(t *testing.T) {
	h := clitest.NewHost(t)
	h.TryErr = report.New(report.Host, "keep podrun's data on ext4", "podrun cannot run pods here: mount overlay: invalid argument")
	clitest.CheckResult(t, h.Run("up", h.File(clitest.OneContainer)), 125, "", "podrun: podrun cannot run pods here: mount overlay: invalid argument\nhint: keep podrun's data on ext4\n")
	if left, err := os.ReadDir(h.Dirs.Data); err != nil || len(left) > 0 {
		t.Errorf("left in the data directory: %v, %v", left, err)
	}
}
