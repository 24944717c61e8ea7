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

// maxProcs is how many threads run Go in a supervisor. It has little to compute, but with one
// alone whatever waits in a system call, as containers are made and networks connected,
// keeps all the rest waiting until the runtime notices, which takes up to 10 ms.
// libcontainer's processes do with the one of their environment.
const maxProcs = 4

// gcPercent is how much of what is in use may be free, in percent, before it is collected:
// little is in use. Until a pod is started that would be at every megabyte, and a fifth of
// the supervisor's processor time.
const (
	gcPercent        = 50
	gcPercentAtStart = 400
)

// idleAfter is how long nothing must have changed in the pod for the supervisor to
// shrink, unless it has not for the longest time: there is always something that changes in
// some pods.
const (
	idleAfter = 250 * time.Millisecond
	idleLate  = 30 * time.Second
)

// shrinkWhenIdle shrinks when a time has passed in which touched has not been called, and
// now and then while it is called.
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

// ownProgram is what is mapped of the supervisor's own.
type ownProgram struct {
	once  sync.Once
	clean []mapping
}

// shrink gives back what the start of a pod has used and a steady pod does not:
// free heap, and leave for more garbage; and the supervisor's own program, which stays in
// the page cache, where the kernel may drop it, and is mapped again piece by piece as it is
// needed.
func (p *ownProgram) shrink() {
	debug.SetGCPercent(gcPercent)
	debug.FreeOSMemory()
	p.once.Do(p.find)
	for _, m := range p.clean {
		// An error means that the pages stay: nothing is lost.
		unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// grain is how much of the program is mapped at least when a page of it is needed.
const grain = 32 << 10

// find finds the program's mappings and cuts them into grains. The kernel maps the
// surroundings of a page that is needed, up to 64 KiB or the whole of what it has read at
// once, but never beyond a mapping; neighbours that differ in nothing become one again, so
// every other is left out of core dumps, where programs are not anyhow.
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
