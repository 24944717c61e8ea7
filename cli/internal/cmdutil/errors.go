package cmdutil

import (
	"errors"
	"io/fs"

	"github.com/podrun/podrun/internal/report"
)

// UsageErrorf is a wrong command line of a command.
func UsageErrorf(command, format string, args ...any) error {
	return report.New(report.Usage, "podrun "+command+" --help", format, args...)
}

// ErrImmutable says that a pod runs which cannot become what its manifest says.
var ErrImmutable = errors.New("made from a manifest that differs in what cannot be changed while it runs")

var (
	ErrForbidden = errors.New("forbidden")
	ErrNotFound  = errors.New("not found")
)

// ListenHint is taken, or why a port that nobody has cannot be had either (ip(7), EACCES).
func ListenHint(err error, taken string) string {
	if errors.Is(err, fs.ErrPermission) {
		return "ports below the number in /proc/sys/net/ipv4/ip_unprivileged_port_start (1024, if nobody changed it) are root's"
	}
	return taken
}
