package nsenter_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == protocol.EntrySupervisor {
		os.Exit(fakeSupervisor(os.Args[2]))
	}
	testenv.Main(m)
}

// program compiles the pod program under AddressSanitizer and UndefinedBehaviorSanitizer. A fault of it is a line of the log,
// which the tests compare.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pod")
	text, err := compiled()
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "podprogram")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pod")
	if out, err := exec.Command("../../../scripts/podprogram", path, "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the pod program: %w: %s", err, out)
	}
	return os.ReadFile(path)
})

// A first is a pod's first process, and what the test holds of its pod.
type first struct {
	t        *testing.T
	cmd      *exec.Cmd
	socket   *os.File
	log      *os.File // what its processes write to standard error
	lock     *os.File
	report   *os.File
	lines    *bufio.Reader
	passed   []*os.File
	lockPath string
}

func startFirst(t *testing.T) *first {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &first{t: t, cmd: exec.Command(program(t)), socket: os.NewFile(uintptr(pair[0]), "socket"), lockPath: filepath.Join(t.TempDir(), "lock")}
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	f.cmd.Env = []string{protocol.EnvEnter + "=" + protocol.EnterFirst, "PATH=" + os.Getenv("PATH"), "ASAN_OPTIONS=detect_leaks=0"}
	f.cmd.ExtraFiles = []*os.File{theirs}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { f.socket.Close() })
	return f
}

// pod sends the pod, whose supervisor is a program, and waits for the end of the first process.
func (f *first) pod(supervisor string, env ...string) error {
	f.t.Helper()
	log, theirLog, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	report, theirReport, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if f.lock, err = os.Create(f.lockPath); err != nil {
		f.t.Fatal(err)
	}
	f.log, f.report, f.lines = log, report, bufio.NewReader(log)
	f.t.Cleanup(func() { f.log.Close(); f.report.Close(); f.lock.Close() })
	rights := unix.UnixRights(int(theirLog.Fd()), int(f.lock.Fd()), int(theirReport.Fd()))
	if err := unix.Sendmsg(int(f.socket.Fd()), []byte("f"), rights, nil, 0); err != nil {
		f.t.Fatal(err)
	}
	theirLog.Close()
	theirReport.Close()
	words := slices.Concat([]string{"podrun", protocol.EntrySupervisor, f.t.TempDir(), "a", "b", "c", ""}, env, []string{
		protocol.EnvEnter + "=" + protocol.EnterPod, protocol.EnvAfter + "=" + protocol.AfterNothing, protocol.EnvSupervisor + "=" + supervisor, protocol.EnvHostname + "=host", ""})
	f.send(strings.Join(words, "\x00"))
	return f.cmd.Wait()
}

func (f *first) send(text string) {
	f.t.Helper()
	message := binary.NativeEndian.AppendUint32([]byte("t"), uint32(len(text)))
	if _, err := f.socket.Write(append(message, text...)); err != nil {
		f.t.Fatal(err)
	}
}

// expect compares the next line of the log.
func (f *first) expect(want string) {
	f.t.Helper()
	if line, err := f.lines.ReadString('\n'); strings.TrimSpace(line) != want {
		report := make([]byte, 1000)
		f.t.Fatalf("%q, %v, want %q; report: %s", line, err, want, report[:read(f.report, report)])
	}
}

// processes returns the pids of pod init and monitor.
func (f *first) processes() (podInit, monitor int) {
	f.t.Helper()
	text, err := os.ReadFile(f.lockPath)
	if err != nil {
		f.t.Fatal(err)
	}
	var start uint64
	if _, err := fmt.Sscan(string(text), &podInit, &start, &monitor, &start); err != nil {
		f.t.Fatalf("%q: %v", text, err)
	}
	return podInit, monitor
}

// The life of a pod, without Go: its supervisor crashes, hibernates and is started again with what it has kept; its pod init
// is killed, and the monitor starts another; a stop reaches the supervisor, and the pod ends with its code.
func TestPodProgramWithAFakeSupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	f := startFirst(t)
	if ready := make([]byte, 1); read(f.socket, ready) != 1 || ready[0] != 'x' {
		t.Fatalf("it is not ready: %q", ready)
	}
	if err := f.pod(fmt.Sprintf("/proc/%d/exe", os.Getpid())); err != nil {
		t.Error(err)
	}
	f.expect("after nothing with [] ready")
	f.expect("podrun: the supervisor was killed by signal 9; its containers keep running; restarting in 0.0 s")
	f.expect("after death with [a] exit 0 true")
	if text, err := io.ReadAll(f.report); len(text) != 0 || err != nil {
		t.Errorf("the report is %q, %v", text, err)
	}
	f.expect("after hibernation with [a]")
	podInit, monitor := f.processes()
	if err := unix.Kill(podInit, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.expect("podrun: the pod init was killed (status 9) with its sandbox; restarting in 0.0 s")
	f.expect("after sandbox with [] ready")
	if err := unix.Kill(monitor, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.expect("stop")
	if rest, err := io.ReadAll(f.lines); len(rest) != 0 || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	reapMonitor(t, 0)
}

// reapMonitor waits for the monitor, which is a child of this process, the first of a PID namespace.
func reapMonitor(t *testing.T, code int) {
	t.Helper()
	var status unix.WaitStatus
	if _, err := unix.Wait4(-1, &status, 0, nil); err != nil || status.ExitStatus() != code {
		t.Errorf("the monitor exits with %d, %v, want %d", status.ExitStatus(), err, code)
	}
}

func read(f *os.File, b []byte) int {
	n, _ := f.Read(b)
	return n
}

// A supervisor that cannot be executed is reported to the caller, and nothing stays.
func TestPodProgramWithoutASupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	f := startFirst(t)
	read(f.socket, make([]byte, 1))
	if err := f.pod("/nonexistent"); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(f.report); string(text) != "open the supervisor program: No such file or directory\n" || err != nil {
		t.Errorf("the report is %q, %v", text, err)
	}
	if log, err := io.ReadAll(f.log); len(log) != 0 || err != nil {
		t.Errorf("%s %v", log, err)
	}
	reapMonitor(t, 125)
}

// A first process whose caller goes, or sends what is none, ends and leaves nothing.
func TestFirstProcessWithoutAPod(t *testing.T) {
	for name, test := range map[string]struct {
		send func(f *first)
		code int
		text string
	}{
		"nothing":            {func(*first) {}, 0, ""},
		"a part of a length": {func(f *first) { _, _ = f.socket.Write([]byte("t\x01")) }, 0, ""},
		"a part of a text":   {func(f *first) { _, _ = f.socket.Write([]byte("t\xff\x00\x00\x00abc")) }, 0, ""},
		"too much":           {func(f *first) { _, _ = f.socket.Write([]byte("t\xff\xff\xff\xff")) }, 125, "receive the pod's description"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			f := startFirst(t)
			read(f.socket, make([]byte, 1))
			test.send(f)
			if err := unix.Shutdown(int(f.socket.Fd()), unix.SHUT_WR); err != nil {
				t.Fatal(err)
			}
			_ = f.cmd.Wait()
			if code := f.cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if text, _ := io.ReadAll(f.socket); !strings.HasPrefix(string(text), test.text) || test.text == "" && len(text) != 0 {
				t.Errorf("it reports %q", text)
			}
		})
	}
}

// fakeSupervisor does what a supervisor does towards the pod init, in the order of the test, and writes to standard error
// what it has been given. dir counts the supervisors.
func fakeSupervisor(dir string) int {
	channel := protocol.FDChannel
	count, err := os.OpenFile(filepath.Join(dir, "count"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fail(err)
	}
	_, werr := count.Write([]byte("x"))
	info, err := count.Stat()
	if err = errors.Join(werr, err); err != nil {
		return fail(err)
	}
	var names []string
	for word := range strings.FieldsSeq(os.Getenv(protocol.EnvKeptFDs)) {
		name, _, _ := strings.Cut(word, "=")
		names = append(names, name)
	}
	said := fmt.Sprintf("after %s with %v", os.Getenv(protocol.EnvAfter), names)
	switch info.Size() {
	case 1:
		said += " " + receive(channel)
		fmt.Fprintln(os.Stderr, said)
		return crashWithAnOrphan(channel, count)
	case 2:
		var pid, start, status, at int64
		var comm string
		message := receive(channel)
		_, err := fmt.Sscanf(message, protocol.MsgExit+" %d %d %d %d %s", &pid, &start, &status, &at, &comm)
		fmt.Fprintf(os.Stderr, "%s exit %d %v\n", said, status, err == nil && pid > 1 && at > 0)
		var now unix.Timespec
		err = errors.Join(unix.ClockGettime(unix.CLOCK_BOOTTIME, &now),
			send(channel, fmt.Sprintf("%s %d %d", protocol.MsgForget, pid, start)),
			send(channel, fmt.Sprintf("%s %d 0 0", protocol.MsgHibernate, now.Nano()+int64(10*time.Millisecond))))
		return fail(err)
	case 3:
		fmt.Fprintln(os.Stderr, said)
		select {} // until the pod init is killed
	default:
		fmt.Fprintln(os.Stderr, said+" "+receive(channel))
		err := send(channel, protocol.MsgServing)
		fmt.Fprintln(os.Stderr, receive(channel))
		return fail(errors.Join(err, send(channel, protocol.MsgStopRecorded), send(channel, protocol.MsgFinished+" 0")))
	}
}

// crashWithAnOrphan keeps a descriptor, and is killed. Its child ends with it.
func crashWithAnOrphan(channel int, keep *os.File) int {
	r, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	orphan := exec.Command("cat")
	orphan.Stdin = r
	err = errors.Join(orphan.Start(), unix.Sendmsg(channel, []byte(protocol.MsgKeep+" a"), unix.UnixRights(int(keep.Fd())), nil, 0), send(channel, protocol.MsgServing))
	if err != nil {
		return fail(err)
	}
	err = unix.Kill(os.Getpid(), unix.SIGKILL)
	w.Close()
	return fail(err)
}

func fail(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the fake supervisor:", err)
		return 1
	}
	return 0
}

func send(channel int, message string) error {
	return unix.Sendmsg(channel, []byte(message), nil, nil, 0)
}

func receive(channel int) string {
	b := make([]byte, protocol.MaxMessage)
	n, err := unix.Read(channel, b)
	return string(b[:max(n, 0)]) + strings.TrimPrefix(fmt.Sprint(err), "<nil>")
}
