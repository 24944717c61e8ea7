package nsprobe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/volumes"
)

// enterNamespaces is the outer entry point. It runs as root of a user namespace, in a mount namespace of
// its own, and executes the inner entry point in the other namespaces of a pod.
func enterNamespaces(args []string) int {
	cmd := exec.Command("/proc/self/exe", append([]string{protocol.EntryProbeInside}, args...)...)
	cmd.Args[0] = "podrun"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := cmd.Run(); err == nil {
		return 0
	} else if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		writeFindings(mapped(), overlay(args[0]), host.Finding{Name: host.Network, Level: host.Warning, Detail: "not probed: no namespaces", Hint: "see sandbox"}, failed(host.Sandbox, fmt.Errorf("make a pod's namespaces: %w", err)))
		return 0
	}
	return 1
}

// probeAll is the inner entry point.
func probeAll(args []string) int {
	// They are sorted by name. The filter comes last, because it cannot be removed.
	ids, root, net := mapped(), overlay(args[0]), network()
	sandbox := failed(host.Sandbox, errors.Join(mounts(args[0]), filter()))
	if sandbox.Level == "" {
		sandbox = host.Finding{Name: host.Sandbox, Level: host.OK, Detail: "namespaces, mounts and the seccomp filter of a pod work"}
	}
	writeFindings(ids, root, net, sandbox)
	return 0
}

func writeFindings(findings ...host.Finding) { json.NewEncoder(os.Stdout).Encode(findings) }

// mapped counts the ids of the namespace.
func mapped() host.Finding {
	f := host.Finding{Name: host.MappedIDs, Level: host.OK}
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return failed(f.Name, err)
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		var first, host, n int
		fmt.Sscan(line, &first, &host, &n)
		sum += n
	}
	f.Detail = fmt.Sprintf("a pod has %d user ids", sum)
	if sum == 1 {
		f.Level, f.Detail = host.Note, "a pod has a single user id, 0, which is yours: images with more users are refused"+keptGroups(os.Getgroups())
		f.Hint = "see id mapping tools and subordinate ids"
	}
	return f
}

// keptGroups describes the groups that a process of a pod with a single user id keeps: the kernel
// does not let it drop any. Groups from outside the user namespace are not 0.
func keptGroups(groups []int, err error) string {
	if err == nil && !slices.ContainsFunc(groups, func(g int) bool { return g != 0 }) {
		return ""
	}
	return "; containers keep your supplementary groups; hostPath volumes that only these groups can access are refused"
}

func overlay(dir string) host.Finding {
	if err := volumes.ProbeOverlay(dir); err != nil {
		f := failed(host.Overlay, err)
		f.Detail = strings.ReplaceAll(f.Detail, dir, filepath.Dir(dir))
		f.Hint = strings.ReplaceAll(f.Hint, dir, filepath.Dir(dir))
		return f
	}
	return host.Finding{Name: host.Overlay, Level: host.OK, Detail: "overlayfs works in a user namespace, on the file system of the data directory"}
}

// network makes a pod's network in the probe's own network namespace.
func network() host.Finding {
	if err := router.Probe("/proc/self/ns/net"); err != nil {
		f := failed(host.Network, err)
		f.Level, f.Detail = host.Warning, "pods have only a loopback network: "+f.Detail
		return f
	}
	return host.Finding{Name: host.Network, Level: host.OK, Detail: "pods are connected by the kernel: nftables and TPROXY work in a user namespace"}
}

// failed returns the finding for err, without a level if err is nil.
func failed(name string, err error) host.Finding {
	if err == nil {
		return host.Finding{Name: name}
	}
	f := host.Finding{Name: name, Level: host.Failure, Detail: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: report.Hint(err)}
	if f.Hint == "" {
		f.Hint = "see what forbids it: dmesg, the security modules in /sys/kernel/security/lsm; in a container: start that with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
	}
	return f
}

// mounts makes the mounts of every pod: /sys, /dev/shm and /dev/mqueue, and the /proc of a
// container.
func mounts(dir string) error {
	sandbox := volumes.SharedMountSpec{Dir: filepath.Join(dir, "sandbox"), NetNS: "/proc/thread-self/ns/net", IPCNS: "/proc/thread-self/ns/ipc"}
	if _, err := sandbox.Mount(); err != nil {
		return err
	}
	proc := filepath.Join(dir, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return report.New(report.Failure, "podrun seems to run in a container that covers parts of /proc: start that with --security-opt systempaths=unconfined, or run podrun outside of it",
			"mount the /proc of a container: %w", err)
	}
	return errors.Join(unix.Unmount(proc, unix.MNT_DETACH), sandbox.Unmount())
}

// filter loads a system call filter that permits everything, in the way a container's is loaded:
// without privileges.
func filter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := unix.SockFprog{Len: 1, Filter: &allow}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("load a system call filter: %w", errno)
	}
	return nil
}
