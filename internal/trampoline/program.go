package trampoline

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is the trampoline's program, in a file that no container can write to, nor make
// one that nobody can execute. A process of a container can come by that file: it has the kernel
// execute a script of its own whose interpreter is /proc/self/exe.
type Program struct {
	file  *os.File // on a file system that is read-only; nil where every process gets a copy
	mount *os.File // of that file system; open, as the kernel takes long to let go of it
	bytes []byte
}

const (
	fileName  = "podrun-trampoline"
	firstFree = 16 // above every descriptor that a process made from here is given
)

// NewProgram makes the file of a program. Where the host lets it make no file system for it, every
// process gets a copy in memory of its own: a container can then take away only what has been
// executed already.
func NewProgram(program []byte) (*Program, error) {
	mount, file, err := onReadOnlyFS(program)
	if err == nil {
		return &Program{file: file, mount: mount}, nil
	}
	p, merr := NewInMemory(program)
	if merr != nil {
		return nil, errors.Join(err, merr)
	}
	return p, nil
}

// NewInMemory is Seal for a host that lets it make no file system. A host may refuse to
// execute such files, too.
func NewInMemory(program []byte) (*Program, error) {
	p := &Program{bytes: program}
	f, err := p.open(nil)
	if err != nil {
		return nil, err
	}
	return p, f.Close()
}

// open returns a file of the program, which is the caller's own and to be closed. files are those
// of the process that is to execute it by the number of its descriptor: before the child executes
// it, package syscall duplicates descriptors to the numbers after the highest of files, whether
// they are in use or not. The file's own descriptor is above these.
func (p *Program) open(files []*os.File) (*os.File, error) {
	from := firstFree
	for _, f := range files {
		from = max(from, int(f.Fd())+len(files)+3) // one for each file, the pipe for the error of execve, and what is between
	}
	if p.file == nil {
		return sealedMemfd(p.bytes, from)
	}
	return dupAbove(int(p.file.Fd()), from)
}

// onReadOnlyFS makes the file on a file system of its own, which is mounted nowhere. That file
// system, and not only its mount, is read-only: neither the file's content nor its mode can be
// changed, by whatever descriptor, except by who has CAP_SYS_ADMIN in the user namespace of the pods.
func onReadOnlyFS(program []byte) (mount, file *os.File, err error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("make a file system in memory: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, nil, fmt.Errorf("make a file system in memory: %w", err)
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, nil, fmt.Errorf("mount a file system in memory: %w", err)
	}
	mount = os.NewFile(uintptr(root), "podrun-trampoline's mount")
	if err = writeReadOnly(root, program); err == nil {
		file, err = openAbove(root, fileName, firstFree)
	}
	if err != nil {
		return nil, nil, errors.Join(err, mount.Close())
	}
	return mount, file, nil
}

// writeReadOnly writes the program to a file system, and makes that read-only.
func writeReadOnly(root int, program []byte) error {
	if err := create(root, program); err != nil {
		return fmt.Errorf("write a file in memory: %w", err)
	}
	same, err := unix.Fspick(root, "", unix.FSPICK_EMPTY_PATH|unix.FSPICK_CLOEXEC)
	if err == nil {
		if err = unix.FsconfigSetFlag(same, "ro"); err == nil {
			err = unix.FsconfigReconfigure(same)
		}
		err = errors.Join(err, unix.Close(same))
	}
	if err != nil {
		return fmt.Errorf("make a file system in memory read-only: %w", err)
	}
	return nil
}

// create writes the program to a new file in a directory.
func create(dir int, program []byte) error {
	syscall.ForkLock.RLock() // a child that has it open to be written to keeps the file system from becoming read-only
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Openat(dir, fileName, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o555)
	if err != nil {
		return err
	}
	return errors.Join(write(fd, program), unix.Fchmod(fd, 0o555), unix.Close(fd)) // whatever the umask
}

// write writes all of a program.
func write(fd int, program []byte) error {
	for len(program) > 0 {
		n, err := unix.Write(fd, program)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		program = program[max(n, 0):]
	}
	return nil
}

// mfdExec says that the file is to be executed: a host may want it said (vm.memfd_noexec).
const mfdExec = 0x10

// sealedMemfd makes a file in memory whose content cannot be changed; its mode can.
func sealedMemfd(program []byte, from int) (*os.File, error) {
	syscall.ForkLock.RLock() // a child must not have it open to be written to when it is executed
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.MemfdCreate(fileName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(fileName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	defer unix.Close(fd)
	if err = write(fd, program); err == nil {
		err = unix.Fchmod(fd, 0o555)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return nil, fmt.Errorf("seal a file in memory: %w", err)
	}
	return openAbove(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), from) // what is open to be written to cannot be executed
}

// openAbove opens a file to be read, as a descriptor from from on.
func openAbove(dir int, name string, from int) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file in memory: %w", err)
	}
	defer unix.Close(fd)
	return dupAbove(fd, from)
}

// dupAbove duplicates a descriptor, to the first free one from from on.
func dupAbove(fd, from int) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, from)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), fileName), nil
}

// Close ends the use of a program.
func (p *Program) Close() error {
	if p.file == nil {
		return nil
	}
	return errors.Join(p.file.Close(), p.mount.Close())
}
