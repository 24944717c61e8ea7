package netns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/procfs"
)

// AllowUnprivileged lets every user and group of a pod's network listen on every port and send echo
// requests, as other container runtimes do. In a network of the pod's own, reserving low ports
// protects nothing, and ping needs no capability.
func AllowUnprivileged(nsPath string) error {
	groups, err := groupRange()
	if err != nil {
		return err
	}
	return nsthread.Do(func() error {
		return errors.Join(procfs.WriteSysctl("net/ipv4/ip_unprivileged_port_start", "0"), procfs.WriteSysctl("net/ipv4/ping_group_range", groups))
	}, nsPath)
}

// idRange is one line of an ID map: count IDs starting at inside map to those starting at outside.
type idRange struct{ inside, outside, count uint64 }

// groupRange is the widest ping_group_range that this process can set.
func groupRange() (string, error) {
	f, err := os.Open("/proc/thread-self/gid_map")
	if err != nil {
		return "", fmt.Errorf("read which groups there are: %w", err)
	}
	defer f.Close()
	m, err := readMap(f)
	if err != nil {
		return "", fmt.Errorf("read which groups there are: %w", err)
	}
	first, last := widestRange(m)
	return fmt.Sprintf("%d %d", first, last), nil
}

func readMap(r io.Reader) (m []idRange, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e idRange
		if _, err := fmt.Sscan(lines.Text(), &e.inside, &e.outside, &e.count); err != nil {
			return nil, fmt.Errorf("parse %q: %w", lines.Text(), err)
		}
		m = append(m, e)
	}
	return m, lines.Err()
}

// maxGroup is the largest group that the kernel accepts in ping_group_range.
const maxGroup = 1<<31 - 1

// widestRange returns the first and the last group of the range of a map that contains the most
// groups. The kernel accepts only mapped groups and compares their values outside of the user
// namespace: there the first must not be greater than the last.
func widestRange(m []idRange) (first, last uint64) {
	slices.SortFunc(m, func(a, b idRange) int { return int(a.inside) - int(b.inside) })
	var most uint64
	for i, from := range m {
		for _, to := range m[i:] {
			if n := countBetween(m, from.outside, to.outside+to.count-1); n > most {
				first, last, most = from.inside, min(to.inside+to.count-1, maxGroup), n
			}
		}
	}
	return first, last
}

// countBetween counts the IDs of a map whose outside values are from low to high.
func countBetween(m []idRange, low, high uint64) (n uint64) {
	for _, e := range m {
		if e.outside >= low && e.outside+e.count-1 <= high {
			n += e.count
		}
	}
	return n
}
