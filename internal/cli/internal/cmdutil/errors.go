package cmdutil

import (
	"errors"
	"io/fs"

	"github.com/podrun/podrun/internal/report"
)

// UsageErrorf returns the error for a wrong command line of a command.
func UsageErrorf(command, format string, args ...any) error {
	return report.New(report.Usage, "podrun "+command+" --help", format, args...)
}

// ErrImmutable is the error for a running pod that cannot be changed to its manifest.
var ErrImmutable = errors.New("cannot be changed in place to match its manifest")

var (
	ErrForbidden = errors.New("forbidden")
	ErrNotFound  = errors.New("not found")
)

// ListenHint returns the hint for a port that cannot be opened: taken, or the reason why a free port is
// not permitted (ip(7), EACCES).
func ListenHint(err error, taken string) string {
	if errors.Is(err, fs.ErrPermission) {
		return "only root can listen on ports below net.ipv4.ip_unprivileged_port_start (default 1024)"
	}
	return taken
}
