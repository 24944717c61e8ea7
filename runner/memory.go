package runner

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxProcs is the number of threads that run Go code in a supervisor. It computes little. With only one,
// each blocking system call (while containers are made and networks connected) stops all other goroutines
// until the runtime notices, which takes up to 10 ms. libcontainer's processes run with the GOMAXPROCS=1 of
// their environment.
const maxProcs = 4

// gcPercent is GOGC, the heap growth between two collections, in percent: the live heap is small. While a
// pod is being started this would mean a collection at every megabyte and a fifth of the supervisor's
// processor time, so a larger value is used until then.
const (
	gcPercent        = 50
	gcPercentAtStart = 400
)

// idleAfter is the time without changes after which the supervisor shrinks. It also shrinks at the longest
// interval, because in some pods something always changes.
const (
	idleAfter = 250 * time.Millisecond
	idleLate  = 30 * time.Second
)

// shrinkWhenIdle calls shrink when touched has not been called for idleAfter, and at the longest interval
// while it is being called.
func shrinkWhenIdle() (touched func()) {
	var mu sync.Mutex
	last := time.Now()
	var own ownProgram
	timer := time.AfterFunc(idleAfter, func() {
		mu.Lock()
		last = time.Now()
		mu.Unlock()
		own.shrink()
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Reset(max(0, min(idleAfter, time.Until(last.Add(idleLate)))))
	}
}

// ownProgram describes the mappings of the supervisor's own program.
type ownProgram struct {
	once  sync.Once
	clean []mapping
}

// shrink releases memory that the start of a pod needs and a steady pod does not: free heap and the larger
// GC percentage, and the pages of the supervisor's own program. Those stay in the page cache, where the
// kernel may drop them, and are mapped again piece by piece when they are used.
func (p *ownProgram) shrink() {
	debug.SetGCPercent(gcPercent)
	debug.FreeOSMemory()
	p.once.Do(p.find)
	for _, m := range p.clean {
		// On an error the pages stay mapped, which is harmless.
		unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// grain is the size of a piece of the program: the least that is mapped when one of its pages is used.
const grain = 32 << 10

// find finds the program's mappings and splits them into grains. On a page fault the kernel maps the
// surroundings of the page, up to 64 KiB or the whole readahead, but never beyond a mapping. The kernel
// merges adjacent mappings with equal flags, so every second one gets MADV_DONTDUMP; core dumps contain no
// program text anyway.
func (p *ownProgram) find() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	p.clean = cleanMappings(string(smaps), exe)
	for _, m := range p.clean {
		for at := m.start - m.start%(2*grain); at < m.end; at += 2 * grain {
			from, to := max(at, m.start), min(at+grain, m.end)
			if from < to {
				unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTDUMP)
			}
		}
	}
}

type mapping struct{ start, end uintptr }

// cleanMappings returns the read-only mappings of a program from the text of /proc/self/smaps. Mappings
// with private pages (relocated, then protected) are left out: the file does not contain those pages.
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
