package up_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func TestUpRefusals(t *testing.T) {
	manifestError := `podrun: standard input is not a manifest that podrun can run
  standard input: document 1, line 9: spec.containers[0].imagee: unknown field (did you mean image?)
`
	bad := strings.Replace(clitest.OneContainer, "image:", "imagee:", 1)
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		with  func(*clitest.Host)
		code  int
		err   string
	}{
		"no file":      {args: []string{"up"}, code: 2, err: "podrun: up requires the files of pods; here is no compose.yaml, compose.yml, docker-compose.yml, docker-compose.yaml\nhint: podrun up --help\n"},
		"missing file": {args: []string{"up", "nosuch.yaml"}, code: 2, err: "podrun: cannot read the manifest: open nosuch.yaml: no such file or directory\n"},
		"empty name":   {args: []string{"up", ""}, code: 2, err: "podrun: cannot read the manifest: the file's name is empty\n"},
		"directory":    {args: []string{"up", "/proc/tty"}, code: 2, err: "podrun: there are no manifests in the directory /proc/tty: no file ends in .yaml, .yml or .json\n"},
		"started by another": {
			args: []string{"up", "-"}, stdin: clitest.OneContainer, code: 1,
			err: "podrun: pod web is being started or removed by another podrun command\nhint: try again when that is done; podrun ps lists the pods\n",
			with: func(h *clitest.Host) {
				h.StartErr, h.GoneTime = fmt.Errorf("lock pod web: %w", store.ErrLocked), time.Millisecond
			},
		},
		"timeout alone":  {args: []string{"up", "--timeout", "1s", "-"}, code: 2, err: "podrun: --timeout requires -d: in the foreground, up ends with the pods\nhint: podrun up --help\n"},
		"bad manifest":   {args: []string{"up", "-"}, stdin: bad, code: 2, err: manifestError},
		"the same twice": {args: []string{"up", "-", "-f", "X"}, stdin: clitest.OneContainer, code: 2, err: "podrun: pod default/web is defined twice: in X, document 1 and in standard input, document 1\n"},
		"this host": {
			args: []string{"up", "-"}, stdin: clitest.OneContainer, code: 125, err: "podrun: podrun cannot run pods here: there are no user namespaces\nhint: switch them on\n",
			with: func(h *clitest.Host) {
				h.Findings = []host.Finding{{Name: "user namespaces", Level: host.Failure, Detail: "there are no user namespaces", Hint: "switch them on"}}
			},
		},
		"limits": {
			args: []string{"up", "--require-limits", "-"}, stdin: clitest.OneContainer, code: 1,
			err: "podrun: limits are not enforced: cgroup v1, and --require-limits was given\nhint: boot with v2\n",
			with: func(h *clitest.Host) {
				h.Findings = []host.Finding{{Name: host.Limits, Level: host.Warning, Detail: "limits are not enforced: cgroup v1", Hint: "boot with v2"}}
			},
		},
		"image": {
			args: []string{"up", "-"}, stdin: clitest.OneContainer, code: 1, err: "podrun: cannot use image busybox:1: it is not there\nhint: load it\n",
			with: func(h *clitest.Host) { h.ImageErr = report.New(report.Failure, "load it", "it is not there") },
		},
		"start": {
			args: []string{"up", "-"}, stdin: clitest.OneContainer, code: 1, err: "podrun: cannot start pod web: no more processes\n",
			with: func(h *clitest.Host) { h.StartErr = errors.New("no more processes") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			if tc.with != nil {
				tc.with(h)
			}
			for i, a := range tc.args {
				if a == "X" {
					tc.args[i] = h.File(clitest.OneContainer)
					tc.err = strings.ReplaceAll(tc.err, "in X", "in "+tc.args[i])
				}
			}
			clitest.CheckResult(t, h.Begin(tc.stdin, tc.args...).Wait(), tc.code, "", tc.err)
			if h.Dirs.Pod("default", "web").HasRemains() {
				t.Error("something was left behind")
			}
		})
	}
}

// TestUpFailsOnLockedPod checks that up fails with a message if another process holds the pod's lock.
func TestUpFailsOnLockedPod(t *testing.T) {
	h := clitest.NewHost(t)
	h.GoneTime = time.Millisecond
	p := h.Dirs.Pod("default", "web")
	if err := os.MkdirAll(filepath.Dir(p.RuntimeDir()), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	clitest.CheckResult(t, h.Run("up", h.File(clitest.OneContainer)), 1, "", "podrun: pod web is being started or removed by another podrun command\nhint: try again when that is done; podrun ps lists the pods\n")
}
