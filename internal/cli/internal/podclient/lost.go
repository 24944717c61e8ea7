package podclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// A pod that has lost its runtime directory still runs and holds its lock, but has neither a control socket nor the
// state with which a supervisor recovers its containers. Its pod init is killed: the monitor, which keeps the lock,
// starts another, with another sandbox. At no time do two copies of the pod run.

// RecoverLost recovers all pods of the user that have lost their runtime directories, and reports them to out. Their
// number is 0 nearly always. A pod whose Secrets are lost, too, keeps running instead: it could not start again.
func RecoverLost(ctx context.Context, dirs store.Dirs, out io.Writer) (int, error) {
	var lost []store.Pod
	for p, err := range dirs.EachPod() {
		if err != nil {
			return 0, err
		}
		if _, is := p.LostRuntime(); !is {
			continue
		}
		if secrets := p.MissingSecrets(); len(secrets) > 0 {
			fmt.Fprintf(out, "podrun: the runtime directory of pod %s was deleted, and with it its Secrets: the pod keeps running, but no command reaches it; create %s in namespace %s again, then podrun ps starts its containers again\n", p.Name, strings.Join(secrets, ", "), p.Namespace)
			continue
		}
		lost = append(lost, p)
	}
	errs := make([]error, len(lost))
	var all sync.WaitGroup
	for i, p := range lost {
		fmt.Fprintf(out, "podrun: the runtime directory of pod %s was deleted: its containers are started again, in a new sandbox\n", p.Name)
		all.Go(func() { errs[i] = recoverLost(ctx, p) })
	}
	all.Wait()
	return len(lost), errors.Join(errs...)
}

// recoverLost kills the pod init, and returns when the pod's containers run again or the pod has ended, but waits only
// for a short time for containers.
func recoverLost(ctx context.Context, p store.Pod) error {
	podInit, lost := p.LostRuntime()
	if !lost {
		return nil
	}
	if err := p.RestoreRuntime(); err != nil {
		return err
	}
	if err := podInit.Kill(unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("take up pod %s: %w", p.Name, err)
	}
	for deadline := time.Now().Add(AnswerTime); p.Alive(); {
		if conn, err := p.Dial(); err == nil {
			conn.Close()
			within, cancel := context.WithTimeout(ctx, AnswerTime)
			defer cancel()
			_ = WatchStatus(within, p, func(st *pod.Status) bool { return st.AllStarted() || st.Phase.Terminal() })
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return report.New(report.Failure, forceHint(p), "take up pod %s: its processes do not serve it again", p.Name)
		}
		if err := sleep.For(ctx, PollTime); err != nil {
			return err
		}
	}
	return nil
}

// endLost stops a pod that has lost its runtime directory by signals, and kills it when its grace period is over.
// It returns when no process of the pod is left.
func endLost(ctx context.Context, p store.Pod, podInit procfs.Process, grace *int64) error {
	life := p.Incarnation()
	limit := stopTimeout(p, nil) - StopMargin
	if grace != nil {
		limit = min(limit, time.Duration(*grace)*time.Second)
	}
	monitor := monitorOf(podInit)
	if limit > 0 {
		if err := signalFirst(unix.SIGTERM, monitor, podInit); err != nil {
			return fmt.Errorf("stop pod %s: %w", p.Name, err)
		}
	}
	for deadline := time.Now().Add(limit); p.Lives(life) && time.Now().Before(deadline); {
		if err := pollGone(ctx, p, PollTime); err != nil {
			return err
		}
	}
	for _, process := range []procfs.Process{monitor, podInit} { // the monitor would start another pod init
		if err := signalFirst(unix.SIGKILL, process); err != nil {
			return fmt.Errorf("kill pod %s: %w", p.Name, err)
		}
	}
	return waitGone(ctx, p, life)
}

// monitorOf returns the monitor of a pod init; the zero Process if it was killed.
func monitorOf(podInit procfs.Process) procfs.Process {
	if st, ok := procfs.Lookup(podInit.PID); ok && st.Process == podInit {
		if parent, ok := procfs.Lookup(st.PPID); ok && parent.Comm == protocol.CommMonitor {
			return parent.Process
		}
	}
	return procfs.Process{}
}

// signalFirst signals the first of the processes that exists. It is no error if none does.
func signalFirst(sig unix.Signal, processes ...procfs.Process) error {
	for _, process := range processes {
		if process.PID == 0 {
			continue
		}
		if err := process.Kill(sig); !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
