package layer

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedSyscalls are the system calls that unpacking a tar stream does not need and that reach beyond a
// directory: programs, sockets, mounts, other processes, the kernel itself. They return EPERM.
var deniedSyscalls = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_QUOTACTL,
}

// auditArch maps GOARCH to the architecture of the numbers in deniedSyscalls.
var auditArch = map[string]uint32{
	"386":     unix.AUDIT_ARCH_I386,
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm":     unix.AUDIT_ARCH_ARM,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
}

// filterSyscalls installs the filter in every thread of the process, permanently. On a kernel without
// seccomp it does nothing, because the namespaces confine the process too.
func filterSyscalls() error {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no filter for %s", runtime.GOARCH)
	}
	prog := filterProgram(arch, deniedSyscalls)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if thread != 0 && errno == 0 {
		return fmt.Errorf("thread %d has a filter of its own", thread)
	}
	if errno == 0 || errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		return nil
	}
	return errno
}

// filterProgram returns the filter in classic BPF over struct seccomp_data: a call of another architecture's
// ABI kills, one in deny returns EPERM, any other is allowed.
func filterProgram(arch uint32, deny []uint32) []unix.SockFilter {
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret     = unix.BPF_RET | unix.BPF_K

		offNumber, offArch = 0, 4
		x32Bit             = 0x40000000 // the flag of x86-64's second ABI
	)
	kill := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS}
	prog := []unix.SockFilter{
		{Code: load, K: offArch},
		{Code: equal, K: arch, Jt: 1},
		kill,
		{Code: load, K: offNumber},
		{Code: atLeast, K: x32Bit, Jf: 1},
		kill,
	}
	for i, nr := range deny {
		prog = append(prog, unix.SockFilter{Code: equal, K: nr, Jt: uint8(len(deny) - i)})
	}
	return append(prog,
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	)
}
