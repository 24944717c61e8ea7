package host

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// HugePages returns why a pod that is started now cannot have so many bytes of huge pages, by the
// kernel's name of their size ("2MB"): the machine has no such size or has reserved too few, or
// they cannot be limited. The error has a hint.
func HugePages(need map[string]int64) error {
	s, err := delegation.Preview()
	if err == nil {
		err = s.With("hugetlb").Lacks("hugetlb")
	}
	return hugePages("/sys/kernel/mm/hugepages", need, err)
}

// hugePages is HugePages for the sizes in a directory; unlimited is the reason why they cannot be
// limited.
func hugePages(dir string, need map[string]int64, unlimited error) error {
	sizes, err := os.ReadDir(dir)
	if err != nil {
		return report.New(report.Failure, "a kernel with CONFIG_HUGETLBFS has them", "look for huge pages: %w", err)
	}
	has := map[string]int64{} // reserved, by size
	kB := map[string]string{}
	for _, e := range sizes {
		text, _ := strings.CutSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB")
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "nr_hugepages"))
		if err != nil {
			return fmt.Errorf("count huge pages: %w", err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			return fmt.Errorf("count huge pages: %w", err)
		}
		name := kernelName(size)
		has[name], kB[name] = n*size<<10, e.Name()
	}
	for _, size := range slices.Sorted(maps.Keys(need)) {
		have, ok := has[size]
		switch {
		case !ok:
			return report.New(report.Failure, "there are "+strings.Join(slices.Sorted(maps.Keys(has)), ", "), "this machine has no huge pages of %s", size)
		case have < need[size]:
			return report.New(report.Failure, "as root: echo NUMBER >"+filepath.Join(dir, kB[size], "nr_hugepages"),
				"%d bytes of %s pages are requested, and this machine has reserved %d", need[size], size, have)
		}
	}
	if unlimited != nil {
		return report.New(report.Failure, "run the pod as root, or delegate the controller hugetlb to its cgroup: systemd does not", "they cannot be limited: %w", unlimited)
	}
	return nil
}

// kernelName returns the name of a size in KiB in cgroup files (mem_fmt in mm/hugetlb_cgroup.c).
func kernelName(kB int64) string {
	switch {
	case kB >= 1<<20:
		return fmt.Sprintf("%dGB", kB>>20)
	case kB >= 1<<10:
		return fmt.Sprintf("%dMB", kB>>10)
	}
	return fmt.Sprintf("%dKB", kB)
}
