package stage

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
)

// KeeperPID is the keeper's, as this process knows it, which must be a supervisor: 1, unless
// the pod lives in the host's PID namespace.
func KeeperPID() int { return max(1, os.Getppid()) }

// held is the path of a namespace that the keeper holds, as every process of its PID
// namespace can open it. The numbers are those of userns/enter.h.
func held(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", KeeperPID(), fd) }

// PodNet is the path of the pod's network namespace.
func PodNet() string { return held(5) }

// PodIPC is the path of the pod's IPC namespace.
func PodIPC() string { return held(6) }

// PodUTS is the path of the pod's UTS namespace.
func PodUTS() string { return held(7) }

// Router is the path of the network namespace that the pods of a user share: Share.
func Router() string { return held(8) }

// channelFD is PODRUN_CHANNEL_FD of userns/enter.h.
const channelFD = 3

// Hopeless is the exit code of a supervisor that no other could follow: the keeper ends
// the pod. After any other the keeper begins another one.
const Hopeless = 125

// Keeper is a supervisor's connection to its keeper, which outlives it
// (userns/keeper.h). The nil Keeper is that of a supervisor without one: it keeps
// nothing.
type Keeper struct{ conn *net.UnixConn }

// Inherited is what an earlier supervisor of the pod has left with the keeper.
type Inherited struct {
	Died  bool               // it did not end by itself: what it was doing is half done
	Lost  bool               // the keeper was killed, and with it everything of the sandbox: nothing is inherited
	Files map[string]uintptr // descriptors by the names it gave them; not to be closed before they are taken
}

// Exit is the end of a process whose parent, a supervisor, had died.
type Exit struct {
	PID    int
	Start  uint64 // of the process, in ticks since the machine's: /proc/PID/stat
	Status syscall.WaitStatus
	At     time.Duration // CLOCK_BOOTTIME
	Name   string        // of its program
}

// OpenKeeper opens the connection of this process, which must be a supervisor, and returns when
// the keeper holds the pod's namespaces. inherited is nil in the first supervisor of a pod.
func OpenKeeper() (k *Keeper, inherited *Inherited, err error) {
	unix.CloseOnExec(channelFD)
	after := os.Getenv("_PODRUN_AFTER")
	if after == nothing || after == anotherSandbox {
		if err := awaitNamespaces(); err != nil {
			return nil, nil, err
		}
	}
	f := os.NewFile(channelFD, "keeper")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, fmt.Errorf("speak to the keeper: %w", err)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, fmt.Errorf("speak to the keeper: descriptor %d is a %T", channelFD, conn)
	}
	if after != "" && after != nothing {
		inherited = &Inherited{Died: after != "doze", Lost: after == anotherSandbox, Files: keptFiles(os.Getenv("_PODRUN_KEPT"))}
	}
	os.Unsetenv("_PODRUN_AFTER")
	os.Unsetenv("_PODRUN_KEPT")
	return &Keeper{socket}, inherited, nil
}

// keptFiles reads "NAME=DESCRIPTOR …", and keeps the descriptors from programs that are
// executed.
func keptFiles(text string) map[string]uintptr {
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

// _PODRUN_AFTER of the first supervisor of a pod's first keeper, and of a later one's.
const (
	nothing        = "nothing"
	anotherSandbox = "sandbox"
)

// awaitNamespaces waits for the first message to a keeper's first supervisor: Go starts in it while
// the pod's namespaces are made.
func awaitNamespaces() error {
	buf := make([]byte, len("made"))
	for {
		n, _, err := unix.Recvfrom(channelFD, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || string(buf[:n]) != "made" {
			return errors.Join(errors.New("the keeper has ended before it had the pod's namespaces"), err)
		}
		return nil
	}
}

// fder is a file or a socket.
type fder interface {
	SyscallConn() (syscall.RawConn, error)
}

// Keep has the keeper hold a duplicate of a file's descriptor by a name, which has no
// space. Once it returns a supervisor that follows has it, whatever happens.
func (k *Keeper) Keep(name string, file fder) error { return k.hold("keep ", name, file) }

// Watch is Keep, and the file's input ends a sleep.
func (k *Keeper) Watch(name string, file fder) error { return k.hold("watch ", name, file) }

func (k *Keeper) hold(verb, name string, file fder) error {
	if k == nil {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("have the keeper hold %s: %w", name, err)
	}
	cerr := raw.Control(func(fd uintptr) { err = k.send(verb, name, int(fd)) })
	return errors.Join(err, cerr)
}

// KeepFD is Keep for a bare descriptor.
func (k *Keeper) KeepFD(name string, fd int) error {
	if k == nil {
		return nil
	}
	return k.send("keep ", name, fd)
}

// keptName bounds a name (PODRUN_KEPT_NAME).
const keptName = 95

func (k *Keeper) send(verb, name string, fd int) error {
	if len(name) > keptName {
		return fmt.Errorf("have the keeper hold %s: the name is too long", name)
	}
	if _, _, err := k.conn.WriteMsgUnix([]byte(verb+name), unix.UnixRights(fd), nil); err != nil {
		return fmt.Errorf("have the keeper hold %s: %w", name, err)
	}
	return nil
}

// Drop ends a Keep.
func (k *Keeper) Drop(name string) { k.say("drop " + name) }

// Forget tells that an Exit is on record. The keeper repeats it to the next supervisor
// otherwise.
func (k *Keeper) Forget(pid int, start uint64) { k.say(fmt.Sprintf("forget %d %d", pid, start)) }

// Serving tells that the control socket is served and kept: from now on the pod outlives
// its supervisor.
func (k *Keeper) Serving() { k.say("serving") }

// Stopping tells that the stop which the keeper asked for is on record.
func (k *Keeper) Stopping() { k.say("stopping") }

// Over tells that the pod has ended: the keeper ends with this process, with a code.
func (k *Keeper) Over(code int) { k.say(fmt.Sprintf("over %d", code)) }

// Doze tells that this process ends, and that another is to begin when one is needed:
// at an input of what is watched, the end of a process, a stop, or at a CLOCK_BOOTTIME
// (0: none). Until then the keeper tells the descriptor kept as "front" at intervals
// (0: never) that the pod lives.
func (k *Keeper) Doze(wake, ping time.Duration) {
	k.say(fmt.Sprintf("doze %d %d", wake.Nanoseconds(), ping.Milliseconds()))
}

// say sends one message. It fails only if the keeper is gone, and with it this process
// in a moment.
func (k *Keeper) say(words string) {
	if k != nil {
		_, _ = k.conn.Write([]byte(words))
	}
}

// Listen calls for every message of the keeper until there is no keeper any more.
func (k *Keeper) Listen(exit func(Exit), stop func()) {
	buf := make([]byte, 512)
	for {
		n, err := k.conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		words := string(buf[:n])
		if words == "stop" {
			stop()
		} else if e, ok := parseExit(words); ok {
			exit(e)
		}
	}
}

func parseExit(words string) (Exit, bool) {
	f := strings.SplitN(words, " ", 6)
	if len(f) != 6 || f[0] != "exit" {
		return Exit{}, false
	}
	pid, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[2], 10, 64)
	status, err3 := strconv.Atoi(f[3])
	at, err4 := strconv.ParseInt(f[4], 10, 64)
	e := Exit{PID: pid, Start: start, Status: syscall.WaitStatus(status), At: time.Duration(at), Name: f[5]}
	return e, errors.Join(err1, err2, err3, err4) == nil
}
