package netpolicy

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/nsthread"
)

// ListeningPorts returns the TCP ports on which sockets listen in a network namespace.
func ListeningPorts(ns string) (ports []uint16, err error) {
	err = nsthread.Do(func() error {
		for _, name := range []string{"tcp", "tcp6"} {
			file, err := os.Open("/proc/thread-self/net/" + name)
			if errors.Is(err, fs.ErrNotExist) { // no IPv6
				continue
			}
			if err != nil {
				return err
			}
			defer file.Close()
			lines := bufio.NewScanner(file)
			for lines.Scan() {
				if port, ok := parseListener(lines.Text()); ok {
					ports = append(ports, port)
				}
			}
			if err := lines.Err(); err != nil {
				return err
			}
		}
		return nil
	}, ns)
	return ports, err
}

// parseListener returns the port of a listening socket in a line of /proc/net/tcp (proc_net_tcp(5)).
func parseListener(line string) (uint16, bool) {
	const listen = "0A"
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[3] != listen {
		return 0, false
	}
	_, text, _ := strings.Cut(fields[1], ":")
	port, err := strconv.ParseUint(text, 16, 16)
	return uint16(port), err == nil
}
