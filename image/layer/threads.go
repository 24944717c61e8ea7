package layer

/*
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t kept;

// drop_privileges gives up the privileges of the thread that gets the signal. What fails shows in /proc.
static void drop_privileges(int sig) {
	int saved = errno;
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {
		{kept & 0xffffffff, kept & 0xffffffff, 0},
		{kept >> 32, kept >> 32, 0},
	};
	(void)sig;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int c = 0; c < 64; c++)
		if (!(kept >> c & 1))
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	syscall(SYS_capset, &h, d);
	errno = saved;
}

static int on_signal(int sig, uint64_t keep) {
	struct sigaction a = {.sa_handler = drop_privileges, .sa_flags = SA_ONSTACK | SA_RESTART};
	kept = keep;
	return sigaction(sig, &a, 0) ? errno : 0;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dropSignal makes a thread drop its privileges. Nothing else sends it.
const dropSignal = syscall.Signal(64)

// dropTimeout bounds how long the threads may take.
const dropTimeout = 10 * time.Second

// threadSet is the set of threads of this process, as listed in /proc. It can be used after /proc is no
// longer mounted.
type threadSet struct{ tasks *os.Root }

func openThreads() (*threadSet, error) {
	tasks, err := os.OpenRoot("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("find the threads of the unpacker: %w", err)
	}
	return &threadSet{tasks}, nil
}

// dropCapabilities makes all threads drop each capability that is not in keep, also for programs that they
// execute. In Linux a thread can change only its own capabilities. So each gets a signal, and the list is
// read until all are unprivileged: a new thread may have been made by a privileged one.
func (t *threadSet) dropCapabilities(keep uint64) error {
	if errno := C.on_signal(C.int(dropSignal), C.uint64_t(keep)); errno != 0 {
		return fmt.Errorf("handle a signal: %w", syscall.Errno(errno))
	}
	for end := time.Now().Add(dropTimeout); ; time.Sleep(100 * time.Microsecond) {
		privileged, err := t.privileged(keep)
		if err != nil || len(privileged) == 0 {
			return err
		}
		for _, id := range privileged {
			if err := unix.Tgkill(os.Getpid(), id, dropSignal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("signal thread %d: %w", id, err)
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("threads %v keep their capabilities", privileged)
		}
	}
}

// privileged returns the threads that have capabilities outside keep, or could get some.
func (t *threadSet) privileged(keep uint64) (ids []int, err error) {
	dir, err := t.tasks.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		status, err := t.tasks.ReadFile(name + "/status")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		id, ierr := strconv.Atoi(name)
		if err := errors.Join(err, ierr); err != nil {
			return nil, err
		}
		if !isUnprivileged(string(status), keep) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// isUnprivileged parses the status of a thread: proc_pid_status(5).
func isUnprivileged(status string, keep uint64) bool {
	found := 0
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); key {
		case "NoNewPrivs":
			if value != "1" {
				return false
			}
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			found++
			if set, err := strconv.ParseUint(value, 16, 64); err != nil || set&^keep != 0 {
				return false
			}
		}
	}
	return found == 5
}
