package podinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Programs are the paths of the programs that a pod's processes execute.
type Programs struct {
	Pod        string // the pod program
	Supervisor string
	Netstack   string // runs netstack.EntryPoints

	// InUse is a lock that processes share while they may execute these programs; it keeps another
	// version from removing them. nil if the programs are not separate files or the lock is
	// unavailable.
	InUse *store.FileLock
}

// NetstackProgram returns Programs.Netstack in a supervisor.
func NetstackProgram() string { return os.Getenv(protocol.EnvNetstack) }

// Options are the parameters of a pod's first process. The first extra files of the process are
// protocol.FDLock and FDReport.
type Options struct {
	Programs
	Dirs     store.Dirs
	Pod      store.Pod
	Hostname string
	Lock     *os.File // held by the caller; the pod holds it from now on

	// Ports are the host ports that the caller has opened for the pod, by their names. The pod has
	// them from now on.
	Ports map[string]*os.File

	// Notify, if not nil, is the main process of the pod's systemd unit.
	Notify *NotifyTarget

	// OwnUserNS gives the pod's containers a user namespace of their own: UserNS. It maps all ids that
	// the user's pods have or, if Users is set, only that range of them, from 0 on.
	OwnUserNS bool
	Users     *host.Range

	// HostPID keeps the pod in the host's PID namespace.
	HostPID bool

	// Record, if not nil, records the pod (its Plan) while its first processes start, once they know their pod. The
	// supervisor waits for it; if it fails, the pod does not start.
	Record func() error

	// First, if not nil, becomes the pod's first process if it is usable; otherwise it is
	// stopped.
	First *First

	// MoveToCgroup, if not nil, gets the pid of the pod's first process, the ancestor of all
	// others, before there are others, and moves it to the pod's own cgroup. Without it the pod
	// lives in the caller's cgroup.
	MoveToCgroup func(pid int)
}

// Start starts the pod's pod init and supervisor and returns when the supervisor serves the control
// socket. The processes are not children of the caller; they live until the pod has ended.
func Start(s Options) (err error) {
	defer runtime.KeepAlive(s.InUse)
	log, err := s.Pod.OpenSupervisorLog()
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make report pipe: %w", err)
	}
	defer r.Close()
	// What the first process receives. One running thread of Go is enough for the supervisor, and for every libcontainer
	// init, which has the supervisor's environment.
	cmd := &exec.Cmd{Args: append([]string{"podrun", protocol.EntrySupervisor}, reexec.PodArgs(s.Dirs, s.Pod)...)}
	cmd.Env = append(reexec.Environ(), protocol.EnvEnter+"="+protocol.EnterPod, protocol.EnvHostname+"="+s.Hostname, protocol.EnvAfter+"="+protocol.AfterNothing, protocol.EnvSupervisor+"="+s.Supervisor, protocol.EnvNetstack+"="+s.Netstack, "GOMAXPROCS=1")
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{s.Lock, w}
	if s.OwnUserNS {
		ids := "1"
		if u := s.Users; u != nil {
			ids = fmt.Sprintf("0 %d %d", u.First, u.Count)
		}
		cmd.Env = append(cmd.Env, protocol.EnvOwnUserNS+"="+ids)
	}
	if s.HostPID {
		cmd.Env = append(cmd.Env, protocol.EnvHostPID+"=1")
	}
	s.Notify.pass(cmd)
	passPorts(cmd, s.Ports)
	recorded, err := newRecord(cmd, s.Record)
	if err != nil {
		w.Close()
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	}
	defer func() {
		if rerr := recorded.wait(); rerr != nil { // the other errors follow from it
			err = rerr
		}
	}()
	first, done, err := joinShared(cmd, s)
	if err != nil {
		w.Close()
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	}
	defer done()
	if s.MoveToCgroup != nil {
		s.MoveToCgroup(first.cmd.Process.Pid)
	} else {
		// Move this process out of the pod's cgroup: the supervisor cannot move it from its own PID
		// namespace. On failure the supervisor finds the same error and reports it.
		_, _ = delegation.FindAndPrepare(first.Pids()...)
	}
	err = first.run(cmd, recorded.begin)
	w.Close()
	message, rerr := io.ReadAll(io.LimitReader(r, maxReport))
	switch {
	case len(message) > 0:
		reason, hint, _ := strings.Cut(strings.TrimSpace(string(message)), hintLine)
		return report.New(report.Failure, hint, "start pod %s: %s", s.Pod.Name, reason)
	case err != nil:
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	case rerr != nil:
		return fmt.Errorf("read report of pod %s: %w", s.Pod.Name, rerr)
	case !isServed(s.Pod):
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, errors.New("the supervisor ended at once; see "+s.Pod.SupervisorLog()))
	}
	return nil
}

// maxReport limits the text of an error of the pod's first processes, in bytes.
const maxReport = 64 << 10

func isServed(p store.Pod) bool {
	c, err := p.Dial()
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// ReportPipe returns the supervisor's end of the report pipe. When it is closed, with or without an
// error written to it, Start returns.
func ReportPipe() *os.File { return os.NewFile(protocol.FDReport, "report") }

// hintLine separates an error from its hint in the report pipe.
const hintLine = "\nhint: "

// ReportError reports why the supervisor cannot start, with the error's hint.
func ReportError(err error) {
	text := err.Error()
	if hint := report.Hint(err); hint != "" {
		text += hintLine + hint
	}
	fmt.Fprintln(ReportPipe(), text)
}
