package execshim

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program is the exec shim's program, in a file that no container can write to or make
// unexecutable. A process of a container can open that file: it executes a script of its own whose
// interpreter is /proc/self/exe.
type Program struct {
	file  *os.File // on a read-only file system; nil where every process gets a copy
	mount *os.File // of that file system; kept open because the kernel takes long to unmount it
	bytes []byte
}

const (
	fileName  = "podrun-execshim"
	firstFree = 16 // above every descriptor that such a process is given
)

// NewProgram makes the file of a program. If the host permits no file system for it, every process
// gets a copy in memory of its own: a container can then only damage a copy that has been executed
// already.
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

// NewInMemory is NewProgram for a host that permits no file system. A host may also refuse to
// execute such files.
func NewInMemory(program []byte) (*Program, error) {
	p := &Program{bytes: program}
	f, err := p.open(nil)
	if err != nil {
		return nil, err
	}
	return p, f.Close()
}

// open returns a file of the program, which the caller must close. files are open in the process
// that will execute it, by the number of their descriptors there. Before the child executes the
// program, package syscall duplicates descriptors to the numbers after the highest of files,
// whether they are in use or not. The file's own descriptor is above these.
func (p *Program) open(files []*os.File) (*os.File, error) {
	from := firstFree
	for _, f := range files {
		from = max(from, int(f.Fd())+len(files)+3) // one for each file, the pipe for the error of execve, and a margin
	}
	if p.file == nil {
		return sealedMemfd(p.bytes, from)
	}
	return dupAbove(int(p.file.Fd()), from)
}

// Open returns a file of the program for another process, which the caller must close.
func (p *Program) Open() (*os.File, error) { return p.open(nil) }

// onReadOnlyFS makes the file on a file system of its own, which is mounted nowhere. The file
// system is read-only, not only its mount. So neither the file's content nor its mode can be
// changed through any descriptor, except with CAP_SYS_ADMIN in the user namespace of the pods.
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
	mount = os.NewFile(uintptr(root), "podrun-execshim's mount")
	if err = writeReadOnly(root, program); err == nil {
		file, err = openAbove(root, fileName, firstFree)
	}
	if err != nil {
		return nil, nil, errors.Join(err, mount.Close())
	}
	return mount, file, nil
}

// writeReadOnly writes the program to a file system and makes the file system read-only.
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
	syscall.ForkLock.RLock() // a child with the file open for writing prevents read-only
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Openat(dir, fileName, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o555)
	if err != nil {
		return err
	}
	return errors.Join(write(fd, program), unix.Fchmod(fd, 0o555), unix.Close(fd)) // overrides the umask
}

// write writes the whole program.
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

// mfdExec marks the file as executable: a host may require the flag (vm.memfd_noexec).
const mfdExec = 0x10

// sealedMemfd makes a file in memory with sealed content; its mode can still be changed.
func sealedMemfd(program []byte, from int) (*os.File, error) {
	syscall.ForkLock.RLock() // a child must not have it open for writing when it is executed
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
	return openAbove(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), from) // a writable descriptor prevents execve
}

// openAbove opens a file for reading, at a descriptor not below from.
func openAbove(dir int, name string, from int) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file in memory: %w", err)
	}
	defer unix.Close(fd)
	return dupAbove(fd, from)
}

// dupAbove duplicates a descriptor to the first free number not below from.
func dupAbove(fd, from int) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, from)
	if err != nil {
		return nil, fmt.Errorf("duplicate a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), fileName), nil
}

// Close closes the program's file and file system.
func (p *Program) Close() error {
	if p.file == nil {
		return nil
	}
	return errors.Join(p.file.Close(), p.mount.Close())
}
