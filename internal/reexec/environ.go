package reexec

import (
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/protocol"
)

// Environ returns the user's environment without the variables by which this program and
// libcontainer instruct the processes that they start, so that a value set by the user misleads
// none of them.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, protocol.EnvPrefix) || strings.HasPrefix(v, "_LIBCONTAINER_")
	})
}

// WithoutSystemd removes the variables that systemd sets for one process only (sd_notify(3),
// sd_watchdog_enabled(3), sd_listen_fds(3)).
func WithoutSystemd(env []string) []string {
	var rest []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "MAINPID":
		default:
			rest = append(rest, v)
		}
	}
	return rest
}
