package procfs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Handles reports whether a process has a handler for a signal, or blocks it in order to receive it, by its file
// /proc/PID/status. The kernel ignores other signals to the first process of a PID namespace, except SIGKILL
// and SIGSTOP from outside.
func Handles(statusFile string, sig unix.Signal) (bool, error) {
	text, err := os.ReadFile(statusFile)
	if err != nil {
		return false, fmt.Errorf("read signal handlers: %w", err)
	}
	found := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, _ := bytes.Cut(lines.Bytes(), []byte(":\t"))
		if string(key) != "SigCgt" && string(key) != "SigBlk" {
			continue
		}
		set, err := strconv.ParseUint(string(value), 16, 64)
		if err != nil {
			return false, fmt.Errorf("read signal handlers: %w", err)
		}
		if set&(1<<(sig-1)) != 0 {
			return true, nil
		}
		found = true
	}
	if !found {
		return false, fmt.Errorf("read signal handlers: %s has none", statusFile)
	}
	return false, nil
}
