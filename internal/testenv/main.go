// Package testenv lets tests that need the kernel run as an ordinary user, on any host and started
// by any user: the test binary re-executes itself inside namespaces of its own, and anything that a
// test leaves behind fails it.
package testenv

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
)

// stepEnv passes the current step to a re-executed test binary.
const stepEnv = "_PODRUN_TESTENV"

const (
	asUser   = "user"   // runs as an ordinary user
	inUserns = "userns" // in a user and mount namespace with the user's subordinate ids
	inside   = "inside" // PID 1, also in pid, mount, network, IPC and UTS namespaces
)

// Main is a TestMain. It runs the package's tests as root of a user namespace that belongs to an
// ordinary user, as the first process of a PID namespace, in an empty network. It fails if they
// leave anything: processes, mounts, descriptors, threads in other namespaces, files in the
// temporary directory.
//
// If root starts it, it takes the user from PODRUN_TEST_USER or, without that, the first ordinary
// account of /etc/subuid, and fails if there is none.
//
// Main calls warmUp first: it is for libraries that open something once and keep it.
func Main(m *testing.M, warmUp ...func() error) {
	if fuzzing() {
		os.Exit(m.Run())
	}
	refuseEntryPoint()
	code, err := step(m, warmUp)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func step(m *testing.M, warmUp []func() error) (int, error) {
	runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
	switch os.Getenv(stepEnv) {
	case "":
		if os.Geteuid() == 0 {
			return becomeUser()
		}
		return enterUserns()
	case asUser:
		return enterUserns()
	case inUserns:
		return enterRest()
	default:
		runtime.UnlockOSThread()
		return runTests(m, warmUp)
	}
}

func becomeUser() (int, error) {
	u, err := ordinaryUser(os.Getenv("PODRUN_TEST_USER"))
	if err != nil {
		return 0, err
	}
	// Set the environment of a login. Without a runtime directory skopeo and go.podman.io/image use
	// /run/containers, which only root can access once root has used podman.
	run, err := os.MkdirTemp("", "podrun-test-run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(run)
	if err := os.Chown(run, int(u.UID), int(u.GID)); err != nil {
		return 0, err
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "XDG_") })
	env = append(env, "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name, "XDG_RUNTIME_DIR="+run)
	cmd := rerun(asUser, env)
	// The file is in a directory that only root may enter, and only the go command's cache reads
	// it.
	cmd.Args = slices.DeleteFunc(cmd.Args, func(s string) bool { return strings.HasPrefix(s, "-test.testlogfile=") })
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID}
	return wait(cmd)
}

func enterUserns() (int, error) {
	return wait(rerun(inUserns, append(os.Environ(), reexec.EnterEnv(protocol.EnterUserNS)...)))
}

func enterRest() (int, error) {
	// Entering the user namespace has cleared the parent-death signal.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "podrun-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	cmd := rerun(inside, append(os.Environ(), "TMPDIR="+tmp))
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	code, err := wait(cmd)
	if err != nil || code != 0 {
		return code, err
	}
	left, err := os.ReadDir(tmp)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the tests left files in their temporary directory: %v", left)
	}
	return 0, err
}

func runTests(m *testing.M, warmUp []func() error) (int, error) {
	os.Unsetenv(stepEnv)
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return 0, fmt.Errorf("detach the mount namespace: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return 0, fmt.Errorf("mount /proc: %w", err)
	}
	for _, f := range warmUp {
		if err := f(); err != nil {
			return 0, fmt.Errorf("warm up: %w", err)
		}
	}
	return runLeakless(m)
}

// runLeakless runs the tests and fails if they leave something behind.
func runLeakless(m *testing.M) (int, error) {
	before, err := snapshot()
	if err != nil {
		return 0, err
	}
	code := m.Run()
	if leaks := leaksSince(before); code == 0 && len(leaks) > 0 {
		return 0, fmt.Errorf("the package leaks:\n%s", strings.Join(leaks, "\n"))
	}
	return code, nil
}

// rerun prepares this test binary to run once more. It uses /proc/self/exe, because another user
// may not be permitted to enter the binary's directory.
func rerun(step string, env []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(env, stepEnv+"="+step)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// wait runs cmd, passes signals on to it (the go command sends SIGQUIT when a test hangs) and
// returns its exit code.
func wait(cmd *exec.Cmd) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run the tests in namespaces: %w", err)
	}
	go func() {
		for sig := range signals {
			cmd.Process.Signal(sig)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if st := exit.Sys().(syscall.WaitStatus); st.Signaled() {
			return 0, fmt.Errorf("the tests were killed by %v", st.Signal())
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// refuseEntryPoint ends a test binary that was started by an entry point which its package has not
// registered. Otherwise it would run all tests again, and these would start it again, without end.
func refuseEntryPoint() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "_") {
		fmt.Fprintf(os.Stderr, "testenv: the entry point %s is not registered in this package's TestMain\n", os.Args[1])
		os.Exit(2)
	}
}

// MainOutside is a TestMain for tests from outside any namespace, as users run podrun. It runs the
// package's tests as an ordinary user and, if root started it, once more as root; it chooses the
// user as Main does. As with Main, the process must leave nothing behind.
//
// A test whose name matches asUserOnly, a regular expression as of the flag -skip, does not run as root: what it tests is the
// same for every user. Without one, all run twice.
func MainOutside(m *testing.M, asUserOnly ...string) {
	if fuzzing() {
		os.Exit(m.Run())
	}
	refuseEntryPoint()
	code, err := runOutside(m, asUserOnly)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func runOutside(m *testing.M, asUserOnly []string) (int, error) {
	if os.Getenv(stepEnv) == "" && os.Geteuid() == 0 {
		if code, err := becomeUser(); err != nil || code != 0 {
			return code, err
		}
		if len(asUserOnly) > 0 {
			if err := flag.Set("test.skip", strings.Join(asUserOnly, "|")); err != nil {
				return 0, err
			}
		}
	}
	os.Unsetenv(stepEnv)
	return runLeakless(m)
}

// UserMain is a TestMain for tests of the built binary: they run as an ordinary user, chosen as by
// Main, but in the namespaces in which they were started.
func UserMain(m *testing.M) {
	refuseEntryPoint()
	if os.Geteuid() != 0 {
		os.Unsetenv(stepEnv)
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
	code, err := becomeUser()
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// fuzzing reports whether the test binary generates inputs for a fuzz target, or runs them for one
// that does: a parser needs no namespaces, and the corpus belongs to the caller.
func fuzzing() bool {
	return slices.ContainsFunc(os.Args[1:], func(arg string) bool {
		return strings.HasPrefix(arg, "-test.fuzz=") || strings.HasPrefix(arg, "-test.fuzzworker")
	})
}
