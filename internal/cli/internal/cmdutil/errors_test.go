package cmdutil

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/report"
)

func TestExitCode(t *testing.T) {
	ctrlC := exitcode.Interrupted(syscall.SIGINT)
	broken := errors.New("cannot remove pod web")
	for name, tc := range map[string]struct {
		err    error
		code   int
		unsaid string
	}{
		"failure":               {broken, 1, "cannot remove pod web"},
		"usage":                 {fmt.Errorf("up: %w", UsageErrorf("up", "no file")), 2, "up: no file"},
		"internal":              {report.New(report.Internal, "", "lost the supervisor"), 125, "lost the supervisor"},
		"the host":              {report.New(report.Host, "", "no kernel"), 125, "no kernel"},
		"interrupted":           {ctrlC, 130, ""},
		"the command's own":     {&exitcode.Error{Code: 7}, 7, ""},
		"with a word":           {&exitcode.Error{Code: 127, Err: broken}, 127, "cannot remove pod web"},
		"interrupted, and more": {errors.Join(nil, errors.Join(broken, ctrlC)), 130, "cannot remove pod web"},
	} {
		if got := exitcode.Of(tc.err); got != tc.code {
			t.Errorf("%s: code %d, want %d", name, got, tc.code)
		}
		got := ""
		if rest := exitcode.Unreported(tc.err); rest != nil {
			got = rest.Error()
		}
		if got != tc.unsaid {
			t.Errorf("%s: left to say is %q, want %q", name, got, tc.unsaid)
		}
	}
}

// TestListenHint checks that the hint for a privileged port does not suggest that another process uses it.
func TestListenHint(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EACCES:     "only root can listen on ports below net.ipv4.ip_unprivileged_port_start (default 1024)",
		syscall.EADDRINUSE: "taken",
	} {
		err = errors.Join(&net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", err)})
		if got := ListenHint(err, "taken"); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
