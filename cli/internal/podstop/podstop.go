// Package podstop stops and removes a pod, and kills it when its supervisor does not answer.
package podstop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// StopOptions sets how a pod is stopped.
type StopOptions struct {
	Grace *int64 // seconds; nil: the pod's own
	Force bool

	remove bool // also remove the pod
}

// StopAndRemove stops a pod, if it runs, and removes it.
func StopAndRemove(ctx context.Context, said io.Writer, remove func(store.Pod) error, p store.Pod, how StopOptions) error {
	how.remove = true
	return podclient.Down(ctx, p, func() error { return StopOrKill(ctx, said, p, how) }, remove)
}

// StopAndRemoveVerbose is StopAndRemove for a command whose user waits for it.
func StopAndRemoveVerbose(ctx context.Context, said io.Writer, remove func(store.Pod) error, p store.Pod, how StopOptions) error {
	defer podclient.ReportWaiting(said, "stopping", p, how.Grace, nil)()
	return StopAndRemove(ctx, said, remove, p, how)
}

// forceTime is how long a supervisor may take to answer before a forced stop kills the pod.
const forceTime = 3 * time.Second

// StopOrKill asks the supervisor to stop the pod, and waits for a limited time.
func StopOrKill(ctx context.Context, said io.Writer, p store.Pod, how StopOptions) error {
	if !how.Force {
		return podclient.End(ctx, p, how.request())
	}
	within, cancel := context.WithTimeout(ctx, forceTime)
	defer cancel()
	err := podclient.Stop(within, p, how.request())
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(said, "podrun: the supervisor of pod %s does not answer: killing it\n", p.Name)
	return killPod(p)
}

// RestartSupervisor makes the pod init kill a supervisor that does not answer, and start another.
func RestartSupervisor(p store.Pod) error { return signalPodInit(p, unix.SIGUSR1) }

// killPod kills every process of a pod. The monitor comes first, because it would start another pod init.
func killPod(p store.Pod) error {
	if pid, ok := p.Monitor(); ok && podinit.IsMonitor(pid, p) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end the guard of pod %s: %w", p.Name, err)
		}
	}
	err := signalPodInit(p, unix.SIGKILL)
	if err != nil && !p.Alive() {
		return nil // its pod init was already dead
	}
	return err
}

// signalPodInit sends a signal to the pod init, which is the peer of connections to the control socket.
// When the pod init dies, every process of the pod ends.
func signalPodInit(p store.Pod, sig unix.Signal) error {
	conn, err := p.Dial()
	if err != nil {
		return fmt.Errorf("cannot find the keeper of pod %s: %w", p.Name, err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(cerr, err); err != nil {
		return fmt.Errorf("find the keeper of pod %s: %w", p.Name, err)
	}
	if peer.Pid <= 1 {
		return fmt.Errorf("the keeper of pod %s cannot be seen from here", p.Name)
	}
	if err := unix.Kill(int(peer.Pid), sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send a signal to the keeper of pod %s: %w", p.Name, err)
	}
	return nil
}

func (e StopOptions) request() wire.StopRequest {
	return wire.StopRequest{GraceSeconds: e.Grace, Remove: e.remove}
}
