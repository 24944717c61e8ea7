package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier tells the service manager that started this process how it is doing
// (sd_notify(3)). A nil one tells nobody.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// NewNotifier finds who wants to be told, or returns nil. getenv is os.Getenv.
func NewNotifier(getenv func(string) string) *Notifier {
	path := getenv("NOTIFY_SOCKET")
	if path == "" || path[0] != '/' && path[0] != '@' {
		return nil
	}
	n := &Notifier{socket: path}
	// sd_watchdog_enabled(3): it may be another process's.
	pid := getenv("WATCHDOG_PID")
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// Watchdog is how long the manager waits for a sign of life; 0: it does not.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog
}

// Notify sends assignments, such as READY=1. A manager that does not listen is not the
// pod's concern: the error is for who wants to say it.
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

// The assignments of sd_notify(3).
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Status is a line for `systemctl status`.
func Status(text string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// MainPID is the process whose exit code is the unit's.
func MainPID(pid int) string { return fmt.Sprintf("MAINPID=%d", pid) }

// ExtendTimeout asks for d more, from now on, for the start or the stop that is under way.
func ExtendTimeout(d time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds())
}
