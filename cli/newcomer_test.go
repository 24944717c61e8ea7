package cli

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// Nobody is told to log in again, or to ask for lingering, where no systemd runs.
func TestNoManager(t *testing.T) {
	for booted, want := range map[bool][2]string{
		true:  {"there is no systemd for this user", "loginctl enable-linger"},
		false: {"systemd does not run on this machine", "podrun up -d FILE"},
	} {
		err := noManager(booted)
		if got := err.Error(); got != want[0] {
			t.Errorf("booted %v: %q, want %q", booted, got, want[0])
		}
		if got := report.Hint(err); !strings.Contains(got, want[1]) {
			t.Errorf("booted %v: the hint %q lacks %q", booted, got, want[1])
		}
	}
}

// What did not do is named, and how it ended: the pod that knew it is gone by then.
func TestAilment(t *testing.T) {
	ended := &pod.Terminated{ExitCode: 3, Reason: "Error"}
	for want, c := range map[string]pod.ContainerStatus{
		"":                                     {Name: "app", Ready: true},
		": container app exited with code 3":   {Name: "app", State: pod.State{Terminated: ended}},
		": container again exited with code 3": {Name: "again", RestartCount: 1, LastState: pod.State{Terminated: ended}},
	} {
		if got := ailment(&pod.Status{Containers: []pod.ContainerStatus{c}}); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// A port that is root's has not been taken by somebody, whom ss would show.
func TestListenHint(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EACCES:     "are root's",
		syscall.EADDRINUSE: "taken",
	} {
		err = errors.Join(&net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", err)})
		if got := listenHint(err, "taken"); !strings.HasSuffix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
