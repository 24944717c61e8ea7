package runner

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// idleAfter is how long nothing must have changed in the pod for the supervisor to
// shrink.
const idleAfter = time.Second

// shrink gives back what the start of a pod has used and a steady pod does not:
// free heap, and the supervisor's own program, which stays in the page cache, where
// the kernel may drop it, and is mapped again page by page as it is needed.
func shrink() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range cleanMappings(string(smaps), exe) {
		// An error means that the pages stay: nothing is lost.
		unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

type mapping struct{ start, end uintptr }

// cleanMappings finds the read-only mappings of a program in the text of
// /proc/self/smaps. One that has pages of its own (relocated, then protected) is
// left out: they are not in the file.
func cleanMappings(smaps, exe string) (clean []mapping) {
	var current mapping
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && current.end > 0:
			clean = append(clean, current)
		case len(f) < 5 || strings.HasSuffix(f[0], ":"):
		default:
			current = mapping{}
			if len(f) >= 6 && f[5] == exe && !strings.Contains(f[1], "w") {
				current = parseRange(f[0])
			}
		}
	}
	return clean
}

func parseRange(text string) mapping {
	from, to, _ := strings.Cut(text, "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil {
		return mapping{}
	}
	return mapping{uintptr(start), uintptr(end)}
}
