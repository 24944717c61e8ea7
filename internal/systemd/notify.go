package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier reports the state of this process to the service manager that started it (sd_notify(3)).
// A nil Notifier does nothing.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// NewNotifier returns a Notifier for $NOTIFY_SOCKET, or nil if there is none. getenv is os.Getenv.
func NewNotifier(getenv func(string) string) *Notifier {
	path := getenv("NOTIFY_SOCKET")
	if path == "" || path[0] != '/' && path[0] != '@' {
		return nil
	}
	n := &Notifier{socket: path}
	// sd_watchdog_enabled(3): the variables may be meant for another process.
	pid := getenv("WATCHDOG_PID")
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// Watchdog returns the manager's watchdog timeout, or 0 if it has none.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog
}

// Notify sends assignments, such as READY=1. A failure must not affect the pod: the error is only
// for messages.
func (n *Notifier) Notify(assignments ...string) error {
	if n == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Join(assignments, "\n"))); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}

// Assignments of sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Status returns the assignment of a line for `systemctl status`.
func Status(text string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// MainPID returns the assignment of the process whose exit code is the unit's.
func MainPID(pid int) string { return fmt.Sprintf("MAINPID=%d", pid) }

// ExtendTimeout returns the assignment that extends the timeout of the current start or stop to d
// from now.
func ExtendTimeout(d time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds())
}
