package procfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// WriteSysctl sets a sysctl of the calling thread's network. A sysctl that this kernel does not
// have is no error.
func WriteSysctl(name, value string) error {
	fd, err := unix.Open("/proc/sys/"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte(value))
		unix.Close(fd)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set %s: %w", strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}
