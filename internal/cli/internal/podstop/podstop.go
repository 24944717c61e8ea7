// Package podstop ends pods, and supervisors, that do not answer.
package podstop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Force returns the options of a stop by force: at once, and also if the supervisor does not answer.
func Force(out io.Writer) podclient.StopOptions {
	return podclient.StopOptions{Grace: new(int64), Kill: func(p store.Pod) error {
		fmt.Fprintf(out, "podrun: the supervisor of pod %s does not answer: killing it\n", p.Name)
		return killPod(p)
	}}
}

// RestartSupervisor makes the pod init kill a supervisor that does not answer, and start another.
func RestartSupervisor(p store.Pod) error { return signalPodInit(p, unix.SIGUSR1) }

// killPod kills every process of a pod. The monitor comes first, because it would start another pod init.
func killPod(p store.Pod) error {
	if pid, ok := p.Monitor(); ok && podinit.IsMonitor(pid, p) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end the monitor of pod %s: %w", p.Name, err)
		}
	}
	err := signalPodInit(p, unix.SIGKILL)
	if err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || !p.Alive()) {
		return nil // the pod init has ended, or removes its files
	}
	return err
}

// signalPodInit sends a signal to the pod init, which is the peer of connections to the control socket.
// When the pod init dies, every process of the pod ends.
func signalPodInit(p store.Pod, sig unix.Signal) error {
	conn, err := p.Dial()
	if err != nil {
		return fmt.Errorf("cannot find the pod init of pod %s: %w", p.Name, err)
	}
	defer conn.Close()
	peer, err := wire.Peer(conn)
	if err != nil {
		return fmt.Errorf("find the pod init of pod %s: %w", p.Name, err)
	}
	if peer.Pid <= 1 {
		return fmt.Errorf("the pod init of pod %s is not visible from here", p.Name)
	}
	if err := unix.Kill(int(peer.Pid), sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send a signal to the pod init of pod %s: %w", p.Name, err)
	}
	return nil
}
