package podinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Programs are the paths of those that a pod's processes execute.
type Programs struct {
	Supervisor string
	Netstack   string // has stackproc.Stage

	// InUse is shared by who may yet execute them: else another version may remove them. nil
	// if they are no files of their own, or it cannot be had.
	InUse *store.FileLock
}

// netstackEnv names Programs.Netstack to supervisors.
const netstackEnv = "_PODRUN_NETSTACK"

// NetstackProgram is Programs.Netstack in a supervisor.
func NetstackProgram() string { return os.Getenv(netstackEnv) }

// Options is what a pod's first process needs. The order of the descriptors is
// that of nsenter/nsenter.h.
type Options struct {
	Programs
	Dirs     store.Dirs
	Pod      store.Pod
	Hostname string
	Lock     *os.File // held by the caller; the pod keeps it from now on

	// Ports are those of the host that the caller has opened for the pod, by their names;
	// the pod has them from now on.
	Ports map[string]*os.File

	// Notify, if any, is the front that serves systemd for the pod.
	Notify *NotifyTarget

	// OwnUserNS gives the pod's containers a user namespace of their own: UserNS. Its ids are
	// those of all pods of the user, or, with Users, these of them, from 0 on.
	OwnUserNS bool
	Users     *host.Range

	// HostPID leaves the pod in the host's PID namespace.
	HostPID bool

	// Record, if any, puts the pod on record, that is its plan, while its first processes
	// begin. The supervisor waits for it; if it fails there is no pod.
	Record func() error

	// Prespawn, if any, becomes the pod's first process where it suits, else it ends.
	Prespawn *Prespawn

	// MoveToCgroup, if any, is told the pid of the pod's first process, of which all others
	// come, before there are others: it moves the process to the pod's own cgroup.
	// Without it the pod lives where the caller does.
	MoveToCgroup func(pid int)
}

// Start starts the pod's keeper and supervisor and returns when the supervisor
// serves the control socket. The processes are not children of the caller: they
// live until the pod has ended.
func Start(s Options) (err error) {
	defer runtime.KeepAlive(s.InUse)
	log, err := os.OpenFile(s.Pod.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open supervisor log: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make report pipe: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(s.Supervisor, append([]string{reexec.Supervisor}, reexec.PodArgs(s.Dirs, s.Pod)...)...)
	cmd.Args[0] = "podrun"
	// One thread of Go at a time is enough for the supervisor, and for every init of
	// libcontainer's, which has the supervisor's environment.
	cmd.Env = append(reexec.Environ(), append(reexec.EnterEnv("pod"), "_PODRUN_HOSTNAME="+s.Hostname, "_PODRUN_AFTER="+afterNothing, netstackEnv+"="+s.Netstack, "GOMAXPROCS=1")...)
	cmd.Dir = "/"
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{s.Lock, w}
	if s.OwnUserNS {
		ids := "1"
		if u := s.Users; u != nil {
			ids = fmt.Sprintf("0 %d %d", u.First, u.Count)
		}
		cmd.Env = append(cmd.Env, "_PODRUN_OWN_USERNS="+ids)
	}
	if s.HostPID {
		cmd.Env = append(cmd.Env, "_PODRUN_HOSTPID=1")
	}
	s.Notify.pass(cmd)
	passPorts(cmd, s.Ports)
	recorded, err := startRecord(cmd, s.Record)
	if err != nil {
		w.Close()
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	}
	defer func() {
		if rerr := recorded.wait(); rerr != nil { // all else follows from it
			err = rerr
		}
	}()
	done, err := joinShared(cmd, s.Dirs, &s.Prespawn)
	if err != nil {
		w.Close()
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	}
	defer done()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for the pod
	err = runInCgroup(cmd, s.MoveToCgroup, s.Prespawn)
	w.Close()
	said, rerr := io.ReadAll(io.LimitReader(r, 64<<10))
	switch {
	case len(said) > 0:
		why, hint, _ := strings.Cut(strings.TrimSpace(string(said)), hintLine)
		return report.New(report.Failure, hint, "start pod %s: %s", s.Pod.Name, why)
	case err != nil:
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, err)
	case rerr != nil:
		return fmt.Errorf("read report of pod %s: %w", s.Pod.Name, rerr)
	case !isServed(s.Pod):
		return fmt.Errorf("start pod %s: %w", s.Pod.Name, errors.New("the supervisor ended at once; see "+s.Pod.SupervisorLog()))
	}
	return nil
}

// runInCgroup runs the pod's first process, which ends once the keeper exists.
func runInCgroup(cmd *exec.Cmd, settle func(pid int), ahead *Prespawn) error {
	switch {
	case settle == nil:
		// The pod's cgroup needs this process out of the way, and from its own PID
		// namespace the supervisor cannot move it. Where it fails, the supervisor finds
		// the same and says why.
		_, _ = delegation.FindAndOpen(ahead.Pids()...)
	case ahead != nil:
		settle(ahead.cmd.Process.Pid)
	default:
		return runGated(cmd, settle)
	}
	if ahead != nil {
		return ahead.start(cmd)
	}
	return cmd.Run()
}

// runGated runs the pod's first process, and lets it begin when it is settled.
func runGated(cmd *exec.Cmd, settle func(pid int)) error {
	r, gate, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make gate pipe: %w", err)
	}
	defer gate.Close()
	cmd.Env = append(cmd.Env, fmt.Sprintf("_PODRUN_GATE=%d", 3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	err = cmd.Start()
	r.Close()
	if err != nil {
		return err
	}
	settle(cmd.Process.Pid)
	_, _ = gate.Write([]byte("x")) // fails if the process has died, which Wait tells
	return cmd.Wait()
}

func isServed(p store.Pod) bool {
	c, err := p.Dial()
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// ReportPipe is the supervisor's end of the report pipe. Closing it, with or without
// a word, lets Start return.
func ReportPipe() *os.File { return os.NewFile(reportFD, "report") }

// hintLine is between an error and its hint in the report pipe.
const hintLine = "\nhint: "

// ReportError reports why the supervisor cannot begin, with the hint of the error.
func ReportError(err error) {
	text := err.Error()
	if hint := report.Hint(err); hint != "" {
		text += hintLine + hint
	}
	fmt.Fprintln(ReportPipe(), text)
}

// reportFD is PODRUN_REPORT_FD of nsenter/nsenter.h.
const reportFD = 4
