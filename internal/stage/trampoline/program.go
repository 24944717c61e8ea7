package trampoline

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Program is the trampoline's program, in a file that nobody can write to.
type Program struct{ file *os.File }

// mfdExec says that the file is to be executed: a host may want it said (vm.memfd_noexec).
const mfdExec = 0x10

// firstFree is above every descriptor that a process made from here is given.
const firstFree = 16

// Seal makes the file of a program. A host may refuse to execute such files.
func Seal(program []byte) (*Program, error) {
	fd, err := unix.MemfdCreate("podrun-trampoline", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("podrun-trampoline", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	defer unix.Close(fd)
	if _, err = unix.Write(fd, program); err == nil {
		err = unix.Fchmod(fd, 0o555)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return nil, fmt.Errorf("seal a file in memory: %w", err)
	}
	// Opened anew it cannot be written to, whoever gets hold of the descriptor.
	ro, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file in memory: %w", err)
	}
	defer unix.Close(ro)
	high, err := unix.FcntlInt(uintptr(ro), unix.F_DUPFD_CLOEXEC, firstFree)
	if err != nil {
		return nil, fmt.Errorf("move a descriptor: %w", err)
	}
	return &Program{os.NewFile(uintptr(high), "podrun-trampoline")}, nil
}

// Close ends the use of a program.
func (p *Program) Close() error { return p.file.Close() }

// File is the file of a program.
func (p *Program) File() *os.File { return p.file }
