package podinit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
)

// Stray is a monitor or pod init without the lock of its pod, because the lock's file was deleted. No file names it, so
// only its arguments do.
type Stray struct {
	procfs.Process
	Pod     store.Pod
	monitor bool
}

// Strays returns the strays of the user's pods, monitors first. It reads the name of every process, so callers look
// only where a pod has no living processes by its lock, or on request.
func Strays(dirs store.Dirs) []Stray {
	return podProcesses(dirs, func(p store.Pod, pid int) bool {
		podInit, _, known := p.PodInit()
		monitor, _ := p.Monitor()
		return !p.Alive() || known && pid != podInit && pid != monitor // unknown: the pod starts
	})
}

// StraysOf returns the strays of one pod.
func StraysOf(dirs store.Dirs, p store.Pod) []Stray {
	return slices.DeleteFunc(Strays(dirs), func(s Stray) bool { return s.Pod.DataDir() != p.DataDir() })
}

// podProcesses returns those monitors and pod inits of the user's pods that are wanted, monitors first.
func podProcesses(dirs store.Dirs, want func(p store.Pod, pid int) bool) []Stray {
	var strays []Stray
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		st, ok := procfs.Lookup(pid)
		if !ok || st.Exiting || st.Comm != protocol.CommMonitor && st.Comm != protocol.CommPodInit {
			continue
		}
		if p, ok := podOf(dirs, pid); ok && want(p, pid) {
			strays = append(strays, Stray{st.Process, p, st.Comm == protocol.CommMonitor})
		}
	}
	slices.SortStableFunc(strays, func(a, b Stray) int {
		switch {
		case a.monitor == b.monitor:
			return 0
		case a.monitor:
			return -1
		}
		return 1
	})
	return strays
}

// podOf returns the pod of a monitor or pod init. ok is false if it is not a pod of this user.
func podOf(dirs store.Dirs, pid int) (p store.Pod, ok bool) {
	args := procfs.Args(pid)
	if len(args) != 6 || args[2] != dirs.Data {
		return p, false
	}
	p = dirs.Pod(args[4], args[5])
	return p, IsPodProcess(args, p)
}

// strayTime is how long the processes of a killed pod init may take to end.
const strayTime = 10 * time.Second

// EndStrays kills the strays of a pod with all their processes, waits for their end, and reports them to out.
func EndStrays(dirs store.Dirs, p store.Pod, out io.Writer) error {
	return end(StraysOf(dirs, p), out)
}

// EndFormer is EndStrays for a caller that holds the pod's lock: no process may be left of the pod.
func EndFormer(dirs store.Dirs, p store.Pod, out io.Writer) error {
	return end(podProcesses(dirs, func(other store.Pod, _ int) bool { return other.DataDir() == p.DataDir() }), out)
}

func end(strays []Stray, out io.Writer) error {
	if !slices.ContainsFunc(strays, func(s Stray) bool { return !s.monitor }) {
		for deadline := time.Now().Add(time.Second); len(strays) > 0 && time.Now().Before(deadline); { // it has removed the pod, and ends
			strays = slices.DeleteFunc(strays, Stray.gone)
			time.Sleep(time.Millisecond)
		}
	}
	for _, s := range strays { // a monitor would start another pod init
		if err := s.Kill(unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end process %d of pod %s: %w", s.PID, s.Pod.Name, err)
		}
		fmt.Fprintf(out, "podrun: process %d was left of a pod %s whose lock was deleted: it is ended\n", s.PID, s.Pod.Name)
	}
	for _, s := range strays {
		for deadline := time.Now().Add(strayTime); !s.gone(); {
			if time.Now().After(deadline) {
				return fmt.Errorf("end process %d of pod %s: it does not end", s.PID, s.Pod.Name)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// gone reports whether the kernel has ended the process, and for a pod init all processes of its PID namespace.
func (s Stray) gone() bool {
	st, ok := procfs.Lookup(s.PID)
	return !ok || st.Process != s.Process || st.State == 'Z'
}
