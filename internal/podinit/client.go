package podinit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// PID returns the pod init's pid in the PID namespace of this process, which must be a supervisor:
// 1, unless the pod lives in the host's PID namespace.
func PID() int { return max(1, os.Getppid()) }

// namespacePath returns the path of a namespace that the pod init holds. Every process of its PID
// namespace can open it.
func namespacePath(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", PID(), fd) }

// NetNS returns the path of the pod's network namespace.
func NetNS() string { return namespacePath(protocol.FDNet) }

// IPCNS returns the path of the pod's IPC namespace.
func IPCNS() string { return namespacePath(protocol.FDIPC) }

// UTSNS returns the path of the pod's UTS namespace.
func UTSNS() string { return namespacePath(protocol.FDUTS) }

// RouterNS returns the path of the network namespace that the pods of a user share (see
// joinShared).
func RouterNS() string { return namespacePath(protocol.FDRouter) }

// Client is a supervisor's connection to its pod init (nsenter/state.h), which outlives it. The
// nil Client is for a supervisor without a pod init; it keeps nothing.
type Client struct{ conn *net.UnixConn }

// Inherited is the state that an earlier supervisor of the pod has left with the pod init.
type Inherited struct {
	Died          bool               // it was killed or crashed: its last action may be half done
	PodInitKilled bool               // the pod init was killed, and the sandbox with it: nothing is inherited
	Files         map[string]uintptr // descriptors by the names it gave them; do not close one before taking it over
}

// Exit is the exit of a process whose parent, a supervisor, had died.
type Exit struct {
	PID    int
	Start  uint64 // of the process, in ticks since boot: /proc/PID/stat
	Status syscall.WaitStatus
	At     time.Duration // CLOCK_BOOTTIME
	Name   string        // of its program
}

// Connect opens the connection of this process, which must be a supervisor. It returns when the pod
// init holds the pod's namespaces. inherited is nil in the first supervisor of a pod.
func Connect() (k *Client, inherited *Inherited, err error) {
	unix.CloseOnExec(protocol.FDChannel)
	after := os.Getenv(protocol.EnvAfter)
	if after == protocol.AfterNothing || after == protocol.AfterSandbox {
		if err := awaitNamespaces(); err != nil {
			return nil, nil, err
		}
	}
	f := os.NewFile(protocol.FDChannel, "pod init")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the pod init: %w", err)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, fmt.Errorf("connect to the pod init: descriptor %d is a %T", protocol.FDChannel, conn)
	}
	if after != "" && after != protocol.AfterNothing {
		inherited = &Inherited{Died: after != protocol.AfterHibernation, PodInitKilled: after == protocol.AfterSandbox, Files: inheritedFiles(os.Getenv(protocol.EnvKeptFDs))}
	}
	os.Unsetenv(protocol.EnvAfter)
	os.Unsetenv(protocol.EnvKeptFDs)
	return &Client{socket}, inherited, nil
}

// inheritedFiles parses "NAME=DESCRIPTOR …" and sets close-on-exec on the descriptors.
func inheritedFiles(text string) map[string]uintptr {
	files := map[string]uintptr{}
	for _, f := range strings.Fields(text) {
		name, number, _ := strings.Cut(f, "=")
		if fd, err := strconv.Atoi(number); err == nil {
			unix.CloseOnExec(fd)
			files[name] = uintptr(fd)
		}
	}
	return files
}

// awaitNamespaces waits for the first message to a pod init's first supervisor: the Go runtime of
// that supervisor starts while the pod's namespaces are made.
func awaitNamespaces() error {
	buf := make([]byte, len(protocol.MsgReady))
	for {
		n, _, err := unix.Recvfrom(protocol.FDChannel, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || string(buf[:n]) != protocol.MsgReady {
			return errors.Join(errors.New("the pod init exited before it held the pod's namespaces"), err)
		}
		return nil
	}
}

// rawConner is a file or a socket.
type rawConner interface {
	SyscallConn() (syscall.RawConn, error)
}

// Keep makes the pod init hold a duplicate of a file's descriptor under a name without spaces. Once
// Keep has returned, a later supervisor inherits the descriptor in any case.
func (k *Client) Keep(name string, file rawConner) error { return k.keep(protocol.MsgKeep, name, file) }

// Watch is Keep for a file whose input also ends a hibernation.
func (k *Client) Watch(name string, file rawConner) error {
	return k.keep(protocol.MsgWatch, name, file)
}

func (k *Client) keep(verb, name string, file rawConner) error {
	if k == nil {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("pass %s to the pod init: %w", name, err)
	}
	cerr := raw.Control(func(fd uintptr) { err = k.sendFD(verb, name, int(fd)) })
	return errors.Join(err, cerr)
}

// KeepFD is Keep for a bare descriptor.
func (k *Client) KeepFD(name string, fd int) error {
	if k == nil {
		return nil
	}
	return k.sendFD(protocol.MsgKeep, name, fd)
}

func (k *Client) sendFD(verb, name string, fd int) error {
	if len(name) > protocol.MaxKeptName {
		return fmt.Errorf("pass %s to the pod init: the name is too long", name)
	}
	if _, _, err := k.conn.WriteMsgUnix([]byte(verb+" "+name), unix.UnixRights(fd), nil); err != nil {
		return fmt.Errorf("pass %s to the pod init: %w", name, err)
	}
	return nil
}

// Drop makes the pod init close the descriptor of a Keep.
func (k *Client) Drop(name string) { k.write(protocol.MsgDrop, name) }

// ForgetExit reports that an Exit is recorded. Otherwise the pod init sends it to the next
// supervisor, too.
func (k *Client) ForgetExit(pid int, start uint64) { k.write(protocol.MsgForget, pid, start) }

// Serving reports that the control socket is served and kept: from now on the pod outlives its
// supervisor.
func (k *Client) Serving() { k.write(protocol.MsgServing) }

// StopRecorded reports that the stop which the pod init requested is recorded.
func (k *Client) StopRecorded() { k.write(protocol.MsgStopRecorded) }

// PodEnded reports that the pod has ended: the pod init ends with this process, with the code.
func (k *Client) PodEnded(code int) { k.write(protocol.MsgFinished, code) }

// Hibernate announces that this process exits and that the pod init must start another one at an
// input of a watched descriptor, the exit of a process, a stop, or a CLOCK_BOOTTIME (0: none).
// Until then the pod init reports at intervals (0: never) to the descriptor kept as KeptNotify that
// the pod is alive, and runs so many probes of the latest KeepProbes; their failure is an event, too.
func (k *Client) Hibernate(until, ping time.Duration, probes int) {
	k.write(protocol.MsgHibernate, until.Nanoseconds(), ping.Milliseconds(), probes)
}

// write sends one message. It fails only if the pod init is gone: the kernel then kills this
// process, too.
func (k *Client) write(word string, operands ...any) {
	if k != nil {
		text := fmt.Sprintln(append([]any{word}, operands...)...)
		_, _ = k.conn.Write([]byte(strings.TrimSuffix(text, "\n")))
	}
}

// Listen calls exit or stop for every message of the pod init until the connection ends.
func (k *Client) Listen(exit func(Exit), stop func()) {
	buf := make([]byte, 512)
	for {
		n, err := k.conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		words := string(buf[:n])
		if words == protocol.MsgStop {
			stop()
		} else if e, ok := parseExit(words); ok {
			exit(e)
		}
	}
}

func parseExit(words string) (Exit, bool) {
	f := strings.SplitN(words, " ", 6)
	if len(f) != 6 || f[0] != protocol.MsgExit {
		return Exit{}, false
	}
	pid, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[2], 10, 64)
	status, err3 := strconv.Atoi(f[3])
	ended, err4 := strconv.ParseInt(f[4], 10, 64)
	e := Exit{PID: pid, Start: start, Status: syscall.WaitStatus(status), At: time.Duration(ended), Name: f[5]}
	return e, errors.Join(err1, err2, err3, err4) == nil
}
