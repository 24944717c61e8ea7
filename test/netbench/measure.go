package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/test/internal/measure"
)

// figures contains all measurements, by quantity and by network.
type figures map[string]map[string][]float64

func (f figures) add(what, network string, value float64) {
	if f[what] == nil {
		f[what] = map[string][]float64{}
	}
	f[what][network] = append(f[what][network], value)
}

// client is where connections start: in the pod, or outside.
type client struct {
	network
	which, ns, to string
	portOffset    int // added to each port
}

func (x network) clients(w *testbed) []client {
	list := []client{{x, "out", x.ns, x.out, 0}}
	if x.reachable {
		list = append(list, client{x, "in", w.remote, hostAddr, x.portOffset})
	}
	return list
}

// measureStreams measures once what takes long; measureRequests what is short and more sensitive to
// other load on the host: each network gets a short slice of time, again and again.
func (w *testbed) measureStreams(f figures, x network, seconds int) error {
	for _, s := range x.clients(w) {
		err := errors.Join(s.stream(w, f, "", there, cpuThere, seconds), s.stream(w, f, " --reverse", back, cpuBack, seconds))
		switch {
		case x.parallel:
			err = errors.Join(err, s.stream(w, f, " --parallel 4", several, cpuSeveral, seconds))
		case s.which == "out" && !strings.Contains(s.to, ":"):
			err = errors.Join(err, download(f, x, seconds))
		}
		if err := x.broke(err); err != nil {
			return err
		}
	}
	return nil
}

func (w *testbed) measureRequests(f figures, x network) error {
	for _, s := range x.clients(w) {
		err := errors.Join(s.runClient(f, "roundtrip", median, slowest, echoPort, roundTripsPerSlice), s.connections(f))
		if err := x.broke(err); err != nil {
			return err
		}
	}
	return nil
}

// How much one slice of requests measures. A port waits for 60 s after its connection. As long as
// fewer than half of the ports (14,000) wait, the kernel finds a free one at once.
const (
	roundTripsPerSlice  = 3000
	connectionsPerSlice = 1000

	slicesPerRound = 10
)

// broke only prints broken connections, except for podrun and for pod to pod, where they are an
// error.
func (x network) broke(err error) error {
	if err == nil || strings.HasPrefix(x.name, "po") {
		return err
	}
	fmt.Fprintf(os.Stderr, "netbench: %s broke: %v\n", x.name, err)
	return nil
}

// download fetches 1 GiB with TLS, or as much as the time permits.
func download(f figures, x network, seconds int) error {
	const outOfTime = 28 // exit status of curl(1)
	out, err := command(inNamespace(x.ns, fmt.Sprintf("curl -sk -m %d -o /dev/null -w %%{speed_download} https://%s:%d/", 10+5*seconds, x.out, tlsPort))).Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != outOfTime) {
		return fmt.Errorf("curl: %w", err)
	}
	speed, err := strconv.ParseFloat(string(out), 64)
	if err != nil {
		return err
	}
	f.add(tlsOut, x.name, speed*8/1e9)
	return nil
}

// Quantities. The side precedes the name.
const (
	tlsOut                           = "TLS download of 1 GiB, Gb/s"
	there, back, cpuThere, cpuBack   = ": stream, Gb/s", ": stream back, Gb/s", ": CPU s/GB", ": back, CPU s/GB"
	several, cpuSeveral              = ": 4 streams, Gb/s", ": 4 streams, CPU s/GB"
	median, slowest, rate, busyBytes = ": round trip p50, µs", ": round trip p99, µs", ": connections/s", ": memory in use, MB"
	broken, cpuConnection            = ": connections that broke", ": CPU of a connection, ms"
	idleBytes, startTime             = "memory, idle, MB", "change of the start time, ms"
)

// stream measures a stream in one direction.
func (s client) stream(w *testbed, f figures, flag, speed, cost string, seconds int) error {
	iperf := inNamespace(s.ns, fmt.Sprintf("iperf3 --client %s --port %d --json --time %d%s", s.to, iperfPort+s.portOffset, seconds, flag))
	gb, used, err := w.stream(iperf, func() { f.add(s.which+busyBytes, s.name, pss(s.pids())) })
	if err == nil {
		f.add(s.which+speed, s.name, gb)
		f.add(s.which+cost, s.name, used)
	}
	return err
}

// connections measures short connections, and the processor time that each takes of the processes that carry it.
func (s client) connections(f figures) error {
	before := processorTimes(s.pids())
	if err := s.runClient(f, "short", rate, broken, shortPort, connectionsPerSlice); err != nil {
		return err
	}
	if now := processorTimes(s.pids()); len(now) > 0 {
		f.add(s.which+cpuConnection, s.name, measure.Milliseconds(used(before, now))/connectionsPerSlice)
	}
	return nil
}

// processorTimes returns the processor time of processes, by pid, exactly: that in /proc has hundredths of seconds.
func processorTimes(pids []int) map[int]time.Duration {
	const ofProcess = 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3)
	times := map[int]time.Duration{}
	for _, pid := range pids {
		var t unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|ofProcess), &t) == nil { // otherwise it has exited
			times[pid] = time.Duration(t.Nano())
		}
	}
	return times
}

// used returns the processor time of now's processes since before; some have started since then.
func used(before, now map[int]time.Duration) (sum time.Duration) {
	for pid, t := range now {
		sum += t - before[pid]
	}
	return sum
}

// runClient runs a client of this program, which prints two figures.
func (s client) runClient(f figures, what, first, second string, port, n int) error {
	var a, b float64
	out, err := command(inNamespace(s.ns, fmt.Sprintf("timeout 20 %s _client %s %s %d", self(), what, net.JoinHostPort(s.to, strconv.Itoa(port+s.portOffset)), n))).Output()
	if _, serr := fmt.Sscan(string(out), &a, &b); err != nil || serr != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(err, serr))
	}
	f.add(s.which+first, s.name, a)
	f.add(s.which+second, s.name, b)
	if second == broken && b > 0 {
		return fmt.Errorf("%s: %v connections broke", what, b)
	}
	return nil
}

// stream runs iperf3 and returns Gb/s and the seconds of processor time for each GB. It calls busy meanwhile.
func (w *testbed) stream(line string, busy func()) (speed, cost float64, err error) {
	before := w.processorTime()
	timer := time.AfterFunc(time.Second, busy)
	defer timer.Stop()
	result, err := iperf3(line)
	for tries := 0; err != nil && isStarting(result.Error) && tries < 50; tries++ {
		time.Sleep(100 * time.Millisecond)
		before = w.processorTime()
		timer.Reset(time.Second)
		result, err = iperf3(line)
	}
	used := w.processorTime() - before
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", line, err)
	}
	r := result.End.Received
	return r.Speed / 1e9, used / max(r.Bytes/1e9, 1e-9), nil
}

// report is the final report of iperf3.
type report struct {
	Error string
	End   struct {
		Received struct {
			Bytes float64
			Speed float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	}
}

func iperf3(line string) (result report, err error) {
	out, err := command(line).Output()
	err = errors.Join(err, json.Unmarshal(out, &result))
	if result.Error != "" {
		err = errors.Join(err, errors.New(result.Error))
	}
	return result, err
}

// isStarting reports whether a server is not ready after its last client: it listens again for
// each, and if another client connects meanwhile, that client is reset.
func isStarting(trouble string) bool {
	for _, message := range []string{"Connection refused", "Connection reset", "busy running a test"} {
		if strings.Contains(trouble, message) {
			return true
		}
	}
	return false
}

// processorTime returns the seconds for which the processes of this run and the kernel's threads have run: the
// kernel's WireGuard encrypts on such threads. The time of an interrupt, in which the kernel passes a packet on,
// counts for the process it interrupts. What else the machine does does not count.
func (w *testbed) processorTime() float64 {
	const ticksPerSecond, kthreadd = 100, 2
	list := map[int]procfs.Stat{}
	dirs, _ := filepath.Glob(w.proc + "/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		b, _ := os.ReadFile(dir + "/stat")
		if st, err := procfs.ParseStat(pid, string(b)); err == nil { // not one that has exited meanwhile
			list[pid] = st
		}
	}
	link, _ := os.Readlink(w.proc + "/self")
	self, _ := strconv.Atoi(link)
	var sum int64
	for pid, st := range list {
		ancestor := pid
		for ancestor != 0 && ancestor != self && ancestor != kthreadd {
			ancestor = list[ancestor].PPID
		}
		if ancestor == self || ancestor == kthreadd && list[kthreadd].Comm == "kthreadd" {
			sum += st.Ticks
		}
	}
	return float64(sum) / ticksPerSecond
}

// processes returns the processes of a program, optionally with a given last argument.
func processes(program, last string) []int {
	var list []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		b, _ := os.ReadFile(dir + "/cmdline")
		args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if filepath.Base(args[0]) == program && (last == "" || args[len(args)-1] == last) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

// pss returns the proportional share of memory of processes, in MB.
func pss(pids []int) float64 {
	var sum int64
	for _, pid := range pids {
		kib, _ := measure.PSS(pid) // 0 of a process that has exited
		sum += kib
	}
	return float64(sum) / 1000
}

// memory measures after an idle period; for a pod, what it uses beyond a pod without a network.
func (w *testbed) memory(f figures, networks []network) {
	bare := "bare"
	if w.up(bare, "", "--network", "none") != nil {
		return
	}
	w.names = append(w.names, bare)
	time.Sleep(5 * time.Second)
	for _, x := range networks {
		switch {
		case x.name == "podrun":
			f.add(idleBytes, x.name, pss(x.pids())-pss(processes("podrun", bare)))
		case len(x.pids()) > 0 && x.reachable:
			f.add(idleBytes, x.name, pss(x.pids()))
		}
	}
}

// minStarts is the minimum number of compared pairs of starts: single starts differ by more than
// the effect to be measured.
const minStarts = 60

// pauseAfterEnd is the pause after a pod's end: the kernel removes network namespaces later, on
// threads of its own, which would slow down the next start.
const pauseAfterEnd = 150 * time.Millisecond

// starts measures how much longer a pod with a network takes to start than one without: the
// difference of two consecutive starts, each kind being first equally often.
func (w *testbed) starts(f figures, n int) error {
	once := func(network string) (float64, error) {
		time.Sleep(pauseAfterEnd)
		start := time.Now()
		err := w.up("s", "", "--network", network)
		took := measure.Milliseconds(time.Since(start))
		if derr := w.podrun("down", "s").Run(); err == nil {
			err = derr
		}
		return took, err
	}
	for i := range max(n, minStarts) + 1 {
		took := map[string]float64{}
		order := []string{"none", "auto"}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, network := range order {
			var err error
			if took[network], err = once(network); err != nil {
				return err
			}
		}
		if i > 0 { // the first ones warm up
			f.add(startTime, "podrun", took["auto"]-took["none"])
		}
	}
	return nil
}
