package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// savedState is the value of protocol.EnvUnitState, in JSON: what the command line does not contain.
type savedState struct {
	Output int // the read end of the relay's pipe; -1 if there is none
	Pods   []statePod

	Workloads []stateWorkload `json:",omitempty"` // set instead of the pods, which belong to them
}

// statePod is a pod in savedState.
type statePod struct {
	Namespace, Name string
	Socket          int // -1: the pod has ended
}

// readyTime is how long the pods may take to become ready after the start of their last app container.
// After that systemd gives up: a pod that never becomes ready is a unit that fails to start.
const readyTime = 5 * time.Minute

// waitReady watches the pods until the unit is active, notifies systemd, and waits until they end or a signal
// arrives.
func (s *MainProcess) waitReady(ctx context.Context) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watchAll(within)
	}()
	select {
	case <-done:
	case <-s.Signals:
		cancel()
		<-done
		s.env.EndInterruptLine()
		return s.end(ctx)
	}
	for _, p := range s.Pods {
		if p.Pod.Alive() {
			return s.wait()
		}
	}
	return s.finish()
}

// watchAll returns when every pod is as ActiveWhen demands, or has ended.
func (s *MainProcess) watchAll(ctx context.Context) {
	var mu sync.Mutex
	state := make([]*pod.Status, len(s.Pods))
	allUp := false
	podup.ForEach(s.Pods, func(i int, p *podup.Target) {
		reporter := follow.Reporter{Out: s.env.ErrOut, Pod: p.Pod.Name}
		onStatus := func(st *pod.Status) bool {
			reporter.Status(st)
			mu.Lock()
			defer mu.Unlock()
			state[i] = st
			s.notify(s.status(state))
			if !allUp && count(state, (*pod.Status).AllStarted) == len(state) {
				allUp = true
				s.started()
				s.notify(systemd.ExtendTimeout(readyTime))
			}
			return s.ActiveWhen.reached(st) || st.Phase.Terminal()
		}
		_, _ = podclient.Follow(ctx, p.Pod, onStatus) // if it fails, the pod has ended
	})
	if !allUp {
		s.started()
	}
}

func count(list []*pod.Status, is func(*pod.Status) bool) int {
	n := 0
	for _, st := range list {
		if st != nil && (is(st) || st.Phase.Terminal()) {
			n++
		}
	}
	return n
}

// status returns the status line of all pods.
func (s *MainProcess) status(state []*pod.Status) string {
	var list []string
	for i, p := range s.Pods {
		if state[i] != nil {
			list = append(list, p.Pod.Name+": "+pod.Summarize(p.Plan, state[i]).String())
		}
	}
	return systemd.Status(strings.Join(list, "; "))
}

// wait notifies systemd that the pods are ready and executes the unit loop. It returns only on
// failure.
func (s *MainProcess) wait() error {
	if !s.ready {
		s.notify(systemd.Ready, systemd.MainPID(os.Getpid()))
	}
	state := savedState{Output: -1}
	var sockets []int
	for _, p := range s.Pods {
		entry := statePod{p.Pod.Namespace, p.Pod.Name, -1}
		if p.NotifyConn != nil {
			p.NotifyTarget.Socket.Close() // the supervisor has it; a copy here would hide its end
			entry.Socket = int(p.NotifyConn.Fd())
			sockets = append(sockets, entry.Socket)
		}
		state.Pods = append(state.Pods, entry)
	}
	s.ReleaseStartSlot()
	wakers, err := s.watchRuntime()
	if err != nil {
		return err
	}
	if s.relay != nil {
		if state.Output, err = s.relay.handOver(); err != nil {
			return err
		}
	}
	return execUnitLoop(s.dirs, state, reexec.UnitLoop{Output: state.Output, Sockets: sockets, Wakers: wakers})
}

// execUnitLoop executes the unit loop, which passes the state to the next process. It returns on failure only.
func execUnitLoop(dirs store.Dirs, state savedState, loop reexec.UnitLoop) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("wait for the pods: %w", err)
	}
	return controller.ExecUnitLoop(dirs, loop, append(os.Environ(), protocol.EnvUnitState+"="+string(text)))
}

// watchRuntime returns a descriptor that becomes readable when a pod loses its runtime directory; none if this user
// may have no other watch: then the next command takes up the pod.
func (s *MainProcess) watchRuntime() (wakers []int, err error) {
	watch, err := store.NewWatch()
	if errors.Is(err, unix.EMFILE) {
		return nil, nil
	}
	for _, p := range s.Pods {
		if err == nil {
			err = watch.Runtime(p.Pod)
		}
	}
	if err == nil {
		_, err = podclient.RecoverLost(context.Background(), s.dirs, s.env.ErrOut) // those that were lost before
	}
	if err != nil {
		return nil, err
	}
	return []int{watch.FD()}, nil
}

// Resume continues after the unit loop, which has ended for a reason. It does not read the files
// of the command line, which may have changed.
func (s *MainProcess) Resume(ctx context.Context, reason string, rule follow.ExitCodeFrom) (err error) {
	if s.launcher, err = s.env.Deps.NewLauncher(s.dirs); err != nil {
		return err
	}
	s.rule, s.ready = rule, true
	var state savedState
	if err := json.Unmarshal([]byte(s.env.Getenv(protocol.EnvUnitState)), &state); err != nil {
		return report.New(report.Internal, "", "cannot resume the pods: read %s: %w", protocol.EnvUnitState, err)
	}
	for _, name := range []string{protocol.EnvUnitState, protocol.EnvWokenBy} {
		os.Unsetenv(name)
	}
	if state.Output >= 0 {
		if s.relay, err = reopenOutputPipe(s.env.Out, state.Output); err != nil {
			return err
		}
		defer s.relay.finish()
	}
	for _, entry := range state.Pods {
		p := &podup.Target{Pod: s.dirs.Pod(entry.Namespace, entry.Name), Started: true}
		if entry.Socket >= 0 {
			unix.CloseOnExec(entry.Socket)
			p.NotifyConn, p.NotifyTarget = os.NewFile(uintptr(entry.Socket), "our end"), &podinit.NotifyTarget{}
		}
		s.Pods = append(s.Pods, p)
	}
	if len(state.Workloads) > 0 {
		return s.resumeControllers(ctx, state.Workloads, reason)
	}
	for _, p := range s.Pods {
		if p.Plan, err = p.Pod.Plan(); err != nil { // removed by another podrun
			p.Plan = &pod.Plan{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
		}
	}
	if reason == protocol.WokenByGone {
		return s.reattach(ctx)
	}
	return s.end(ctx) // a signal
}

// reattach continues after a supervisor has closed its connection: its pod has ended, or another
// supervisor runs the pod.
func (s *MainProcess) reattach(ctx context.Context) error {
	if _, err := podclient.RecoverLost(ctx, s.dirs, s.env.ErrOut); err != nil {
		report.Print(s.env.ErrOut, err)
	}
	left := 0
	for _, p := range s.Pods {
		if p.NotifyConn != nil && isHungUp(p.NotifyConn) {
			p.CloseNotify()
			if err := s.attach(ctx, p); err != nil {
				return err
			}
		}
		if p.NotifyConn != nil {
			left++
		}
	}
	if left == 0 {
		return s.finish()
	}
	select {
	case <-s.Signals:
		return s.end(ctx)
	default:
		return s.wait()
	}
}

// isHungUp reports whether the other end is closed, without reading a message.
func isHungUp(socket *os.File) bool {
	n, _, err := unix.Recvfrom(int(socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n <= 0 && !errors.Is(err, unix.EAGAIN)
}

// recordPods records that the pods belong to the unit.
func (s *MainProcess) recordPods() error {
	var pods []store.Pod
	for _, p := range s.Pods {
		pods = append(pods, p.Pod)
	}
	if s.unit == "" {
		return nil
	}
	return s.dirs.SetUnitPods(s.unit, pods)
}

// ForgetPods removes the record that the pods are the unit's.
func (s *MainProcess) ForgetPods() error {
	if s.unit == "" {
		return nil
	}
	return s.dirs.SetUnitPods(s.unit, nil)
}

// Owns reports whether this unit has started a pod.
func (s *MainProcess) Owns(p store.Pod) bool {
	if s.unit == "" {
		return false
	}
	pods, err := s.dirs.UnitPods(s.unit)
	for _, member := range pods {
		if err == nil && member.Namespace == p.Namespace && member.Name == p.Name {
			return true
		}
	}
	return false
}
