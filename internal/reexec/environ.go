package reexec

import (
	"os"
	"slices"
	"strings"
)

// Environ is the user's environment without what this program and libcontainer say to
// the processes that they start: no stage may be misled by what a user has set.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "_PODRUN_") || strings.HasPrefix(v, "_LIBCONTAINER_")
	})
}

// WithoutSystemd leaves out what systemd hands to one process only (sd_notify(3),
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
