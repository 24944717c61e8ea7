package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/pod"
)

// servedEnv carries a service through its wait: what is not in the command line.
const servedEnv = "_PODRUN_SERVED"

// served is the text of servedEnv.
type served struct {
	Output int // the read end of the relay's pipe; -1: there is none
	Pods   []servedPod

	Workloads []servedWorkload `json:",omitempty"` // instead: the pods are theirs
}

// servedPod is a pod in servedEnv.
type servedPod struct {
	Namespace, Name string
	Socket          int // -1: the pod has ended
}

// readyTime is how long the pods may take from the start of their last app container
// to be ready, before systemd gives up: a pod that never gets ready is a unit that
// cannot be started.
const readyTime = 5 * time.Minute

// attend watches the pods until they are ready, tells systemd, and waits for their end
// or a signal. started is called when every app container has been started.
func (s *service) attend(ctx context.Context, signals <-chan os.Signal, started func()) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watchAll(within, started)
	}()
	select {
	case <-done:
	case sig := <-signals:
		cancel()
		<-done
		s.front.afterCtrlC()
		return s.end(ctx, sig, signals)
	}
	for _, p := range s.pods {
		if p.place.Alive() {
			return s.wait()
		}
	}
	return s.finish()
}

// watchAll returns when every pod is ready or has ended.
func (s *service) watchAll(ctx context.Context, started func()) {
	var mu sync.Mutex
	state := make([]*pod.Status, len(s.pods))
	allUp := false
	each(s.pods, func(i int, p *upPod) {
		tell := narrator{out: s.front.err, pod: p.place.Name}
		seen := func(st *pod.Status) bool {
			tell.status(st)
			mu.Lock()
			defer mu.Unlock()
			state[i] = st
			s.tell(s.status(state))
			if !allUp && count(state, up) == len(state) {
				allUp = true
				started()
				s.tell(systemd.ExtendTimeout(readyTime))
			}
			return st.Ready() || st.Phase.Terminal()
		}
		_ = watch(ctx, p.place, seen) // a pod that has ended is seen to have
	})
	if !allUp {
		started()
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

// status is the line of all pods.
func (s *service) status(state []*pod.Status) string {
	var list []string
	for i, p := range s.pods {
		if state[i] != nil {
			list = append(list, p.place.Name+": "+pod.Summarize(p.plan, state[i]).String())
		}
	}
	return systemd.Status(strings.Join(list, "; "))
}

// wait tells systemd that the pods are ready and becomes the loop that waits. It
// returns on failure only.
func (s *service) wait() error {
	if !s.ready {
		s.tell(systemd.Ready, systemd.MainPID(os.Getpid()))
	}
	state := served{Output: -1}
	var sockets []int
	for _, p := range s.pods {
		one := servedPod{p.place.Namespace, p.place.Name, -1}
		if p.socket != nil {
			p.front.Socket.Close() // the supervisor has it; so its end is seen
			one.Socket = int(p.socket.Fd())
			sockets = append(sockets, one.Socket)
		}
		state.Pods = append(state.Pods, one)
	}
	s.giveTurn()
	var err error
	if s.relay != nil {
		if state.Output, err = s.relay.handOver(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("wait for the pods: %w", err)
	}
	return fmt.Errorf("wait for the pods: %w", reexec.UnitWait{Output: state.Output, Sockets: sockets}.Exec(append(os.Environ(), servedEnv+"="+string(text))))
}

// woken goes on where wait has stopped. The files of the command line may have changed
// since: they are not read.
func (f *front) woken(c *cli.Context) error {
	why := f.getenv(reexec.WokenEnv)
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	s := f.newService(dirs, keeper, systemd.NewNotifier(f.getenv))
	s.rule, s.quiet, s.ready = exitFrom(c.String("exit-code-from")), c.Bool("quiet"), true
	var state served
	if err := json.Unmarshal([]byte(f.getenv(servedEnv)), &state); err != nil {
		return report.New(report.Internal, "", "cannot go on with the pods: read %s: %w", servedEnv, err)
	}
	for _, name := range []string{servedEnv, reexec.WokenEnv} {
		os.Unsetenv(name)
	}
	if len(state.Workloads) > 0 {
		return s.wokenWorkloads(c.Context, state, why, signals)
	}
	if state.Output >= 0 {
		if s.relay, err = oldRelay(f.out, state.Output); err != nil {
			return err
		}
		defer s.relay.finish()
	}
	for _, one := range state.Pods {
		p := &upPod{place: dirs.Pod(one.Namespace, one.Name), started: true}
		if one.Socket >= 0 {
			unix.CloseOnExec(one.Socket)
			p.socket, p.front = os.NewFile(uintptr(one.Socket), "our end"), &podinit.NotifyTarget{}
		}
		if p.plan, err = p.place.Plan(); err != nil { // removed by another podrun
			p.plan = &pod.Plan{Namespace: one.Namespace, Name: one.Name}
		}
		s.pods = append(s.pods, p)
	}
	if sig, ok := map[string]os.Signal{"term": syscall.SIGTERM, "int": syscall.SIGINT, "hup": syscall.SIGHUP}[why]; ok {
		return s.end(c.Context, sig, signals)
	}
	return s.goOn(c.Context, signals)
}

// goOn is for a service that a supervisor has hung up on: its pod has ended, or another
// supervisor goes on with it.
func (s *service) goOn(ctx context.Context, signals <-chan os.Signal) error {
	left := 0
	for _, p := range s.pods {
		if p.socket != nil && hungUpOn(p.socket) {
			p.hangUp()
			if err := s.attach(ctx, p); err != nil {
				return err
			}
		}
		if p.socket != nil {
			left++
		}
	}
	if left == 0 {
		return s.finish()
	}
	select {
	case sig := <-signals:
		return s.end(ctx, sig, signals)
	default:
		return s.wait()
	}
}

// hungUpOn says whether the other end is closed, without taking a message.
func hungUpOn(socket *os.File) bool {
	n, _, err := unix.Recvfrom(int(socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n <= 0 && !errors.Is(err, unix.EAGAIN)
}

// record notes that the pods are the unit's; forget, that they no longer are.
func (s *service) record() error {
	var places []store.Pod
	for _, p := range s.pods {
		places = append(places, p.place)
	}
	if s.unit == "" {
		return nil
	}
	return s.dirs.SetUnitPods(s.unit, places)
}

func (s *service) forget() error {
	if s.unit == "" {
		return nil
	}
	return s.dirs.SetUnitPods(s.unit, nil)
}

// owned says whether a pod was started by this unit.
func (s *service) owned(p store.Pod) bool {
	if s.unit == "" {
		return false
	}
	places, err := s.dirs.UnitPods(s.unit)
	for _, own := range places {
		if err == nil && own.Namespace == p.Namespace && own.Name == p.Name {
			return true
		}
	}
	return false
}
