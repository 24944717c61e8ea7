// Package memory shrinks processes that are at rest.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// StartPercent is the GOGC (the growth of the heap between two collections, in percent) of a process that is busy,
// as at its start. With idlePercent it would collect at every megabyte, and spend a fifth of its processor time on
// that.
const StartPercent = 400

// idlePercent is GOGC of a process at rest.
const idlePercent = 50

// maxShrinkDelay is the longest time between two shrinkings of a process that is always busy.
const maxShrinkDelay = 30 * time.Second

// Shrinker shrinks its process when Touch has not been called for a time, and every 30 seconds while it is being
// called.
type Shrinker struct {
	after time.Duration
	own   ownProgram
	mu    sync.Mutex
	last  time.Time // of the last shrinking
	timer *time.Timer
}

// NewShrinker returns a Shrinker whose process shrinks first after this time. When a page of the program is used
// again, at most grain bytes around it are mapped.
func NewShrinker(after time.Duration, grain uintptr) *Shrinker {
	s := &Shrinker{after: after, own: ownProgram{grain: grain}, last: time.Now()}
	s.timer = time.AfterFunc(after, func() {
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
		s.own.shrink()
	})
	return s
}

// Touch puts the shrinking off: the process does something.
func (s *Shrinker) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Reset(max(0, min(s.after, time.Until(s.last.Add(maxShrinkDelay)))))
}

// ownProgram describes the mappings of the process's own program.
type ownProgram struct {
	grain     uintptr // size of a piece, in bytes: the least that is mapped when one of its pages is used
	splitOnce sync.Once
	clean     []mapping
}

// shrink releases memory that a process at rest does not need: free heap and the larger GC percentage, and the
// pages of its own program. The collector runs in one thread: with several each yields to the others at every span,
// which takes a fifth of a supervisor's processor time while many pods start.
func (p *ownProgram) shrink() {
	debug.SetGCPercent(idlePercent)
	procs := runtime.GOMAXPROCS(1)
	debug.FreeOSMemory()
	runtime.GOMAXPROCS(procs)
	p.release()
}

// release releases the pages of the program. They stay in the page cache, where the kernel may drop them, and are
// mapped again piece by piece when they are used.
func (p *ownProgram) release() {
	p.splitOnce.Do(func() {
		p.find()
		p.split()
	})
	for _, m := range p.clean {
		// On an error the pages stay mapped, which is harmless.
		unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// find finds the program's mappings.
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
}

// split splits the mappings into grains. On a page fault the kernel maps the surroundings of the page, up to
// 64 KiB or the whole readahead, but never beyond a mapping. The kernel merges adjacent mappings with equal
// flags, so every second one gets MADV_DONTDUMP; core dumps contain no program text anyway.
func (p *ownProgram) split() {
	for _, m := range p.clean {
		for address := m.start - m.start%(2*p.grain); address < m.end; address += 2 * p.grain {
			from, to := max(address, m.start), min(address+p.grain, m.end)
			if from < to {
				unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTDUMP)
			}
		}
	}
}

type mapping struct{ start, end uintptr }

// cleanMappings returns the read-only mappings of a program from the text of /proc/self/smaps. Mappings with private
// pages (relocated, then protected) are left out: the file does not contain those pages.
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
