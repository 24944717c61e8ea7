package main

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/test/internal/measure"
)

// slowSync is by how much a sync takes longer than on this machine's disk.
const slowSync = 5 * time.Millisecond

var slowTask = "up, " + shapes[0].title + ", slow syncs"

// slowCalls wait for the disk.
var slowCalls = []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS, unix.SYS_SYNC}

// measureSlowSyncs measures up with slow syncs.
func (b *bench) measureSlowSyncs(r *report) error {
	s := shapes[0]
	times := map[string][]time.Duration{}
	err := measure.Rounds("bench: slow syncs", 0, min(b.rounds, restRounds), func(round int) error {
		for _, e := range b.engines() {
			file, before := b.manifest(s.name), b.user.processes()
			var took time.Duration
			err := nsthread.Do(func() (err error) {
				if err = delaySyncs(); err == nil {
					took, err = timed(e.up(s.name, file))
				}
				return err
			})
			if err == nil {
				err = b.user.atRest(before)
			}
			_, derr := timed(e.down(s.name, file))
			if err := errors.Join(err, derr, b.user.awaitExit(before)); err != nil {
				return err
			}
			if round > 0 {
				times[e.name()] = append(times[e.name()], took)
			}
		}
		return nil
	})
	for engine, took := range times {
		put(r.Times, slowTask, engine, summarise(took))
	}
	return err
}

// delaySyncs makes syncs of this thread, and of all processes that it starts, slow: the kernel notifies this process of
// each, and does it when this process has answered. No program changes for that, as with a tracer, and other system
// calls are as fast as before. As root it does not take the privilege from setuid programs.
func delaySyncs() error {
	filter := syncFilter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install a filter of system calls: %w", errno)
	}
	go answerSyncs(int(fd))
	return nil
}

// syncFilter lets all other calls pass.
func syncFilter() []unix.SockFilter {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number, the first field
	for i, call := range slowCalls {
		toLast := uint8(len(slowCalls) - i)
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: toLast})
	}
	const seccompAllow = 0x7fff0000
	return append(filter, unix.SockFilter{Code: unix.BPF_RET, K: seccompAllow}, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
}

// syncCall is the kernel's struct seccomp_notif.
type syncCall struct {
	id         uint64
	pid, flags uint32
	call, arch uint32
	_          uint64
	args       [6]uint64
}

// syncAnswer is the kernel's struct seccomp_notif_resp.
type syncAnswer struct {
	id    uint64
	_     int64
	_     int32
	flags uint32
}

// answerSyncs answers until all processes with the filter have exited.
func answerSyncs(fd int) {
	defer unix.Close(fd)
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && err != unix.EINTR || ready[0].Revents&unix.POLLHUP != 0 {
			return
		}
		var call syncCall
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call))); errno != 0 {
			continue // interrupted, or the caller has been killed
		}
		answer := func() {
			answer := syncAnswer{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
		}
		if call.inMemory() {
			answer()
		} else {
			time.AfterFunc(slowSync, answer)
		}
	}
}

// inMemory reports whether the call's file is on a tmpfs.
func (c *syncCall) inMemory() bool {
	var fs unix.Statfs_t
	return c.call != unix.SYS_SYNC && unix.Statfs(fmt.Sprintf("/proc/%d/fd/%d", c.pid, int32(c.args[0])), &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}
