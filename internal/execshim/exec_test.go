package execshim

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The child executes the program by a descriptor that is still the program's, also where the first
// free number is the one after the highest of the child's files: package syscall puts its pipe
// there.
func TestTheProgramKeepsItsDescriptor(t *testing.T) {
	program, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	const highest = 100
	var output *os.File
	for output == nil || output.Fd() < highest {
		fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, firstFree)
		if err != nil {
			t.Fatal(err)
		}
		output = os.NewFile(uintptr(fd), "output")
		defer output.Close()
	}
	p := &Program{file: program}
	j := &ExecConfig{Args: []string{"true"}, Target: program, Stdio: [3]*os.File{program, output, program}}
	if _, err := p.Exec(t.Context(), j); err == nil || errors.Is(err, syscall.EACCES) {
		t.Errorf("what executes /bin/true in the place of the exec shim: %v", err)
	}
}
