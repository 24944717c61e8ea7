package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	probed    = 50               // containers of one pod, each probed every second
	probedFor = 20 * time.Second // while processor time is counted
	idleFor   = time.Minute      // while writes are counted
	peerRuns  = 20               // of the peer's command for one probe
	tick      = 10 * time.Millisecond
)

// probeKinds are the kinds of probes: podrun's manifest, and the command that is equivalent in the
// peer, whose httpGet is a command in the container.
var probeKinds = []struct{ name, probe, peer string }{
	{"exec true", `exec: {command: ["true"]}`, "true"},
	{"httpGet", `httpGet: {port: 8080}`, "wget -q -O /dev/null http://localhost:8080/"},
}

// cost is the cost of probes and of an idle pod. Processor time is in milliseconds for each probe,
// memory in KiB, writes in bytes.
type cost struct {
	Probe       map[string]map[string]float64 `json:"probeCPU"`      // by kind, then engine
	ProbingPSS  map[string]int64              `json:"probingPSSKiB"` // of podrun, by kind
	IdlePSS     int64                         `json:"idlePSSKiB"`
	IdleWritten int64                         `json:"idleWrittenBytes"`
	IdleFor     string                        `json:"idleFor"`
}

// measureCosts runs when other pods are gone, in a process that adopts orphans.
func (b *bench) measureCosts() (*cost, error) {
	c := &cost{Probe: map[string]map[string]float64{}, ProbingPSS: map[string]int64{}, IdleFor: idleFor.String()}
	for _, k := range probeKinds {
		mine, pss, err := b.ours.probing(b.manifest("probed"), k.probe)
		if err != nil {
			return nil, err
		}
		theirs, err := b.peer.probing(k.peer)
		if err != nil {
			return nil, err
		}
		put(c.Probe, k.name, b.ours.name(), mine)
		put(c.Probe, k.name, b.peer.name(), theirs)
		c.ProbingPSS[k.name] = pss
	}
	var err error
	c.IdlePSS, c.IdleWritten, err = b.ours.idling(b.manifest(shapes[0].name))
	return c, err
}

// probing runs a pod of probed containers, and returns its processor time for each probe, including
// what the probe runs in the container, and its memory.
func (e *podrun) probing(file, probe string) (ms float64, pss int64, err error) {
	text := strings.Replace(header, "NAME", "probed", 1) + "  containers:\n"
	for i := range probed {
		command := fmt.Sprintf("sleep %s", payload)
		if i == 0 {
			command = "mkdir -p /www; echo ok >/www/index.html; httpd -p 8080 -h /www; exec sleep " + payload
		}
		text += fmt.Sprintf("  - name: c%d\n    image: %s\n    imagePullPolicy: Never\n    command: [/bin/sh, -c, %q]\n    readinessProbe: {periodSeconds: 1, timeoutSeconds: 10, %s}\n", i, image, command, probe)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, 0, err
	}
	before := e.user.processes()
	if _, err := timed(e.run("up", "-d", file)); err != nil {
		return 0, 0, err
	}
	defer timed(e.run("down", "probed"))
	if out, err := e.run("wait", "probed", "--for=condition=Ready", "--timeout=60s").CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("wait for 50 containers: %w: %s", err, out)
	}
	was := e.user.used(before)
	time.Sleep(probedFor)
	now := e.user.used(before)
	probes := probed * probedFor.Seconds()
	return (now - was).Seconds() * 1000 / probes, e.user.footprint(before).PSS, nil
}

// probing returns the mean cost of one run of the command that the peer's timers run for each
// probe.
func (e *podman) probing(command string) (ms float64, err error) {
	const name = "bench-probed"
	start := e.run("run", "-d", "--name", name, "--health-cmd", command, "--health-interval", "disable", image,
		"/bin/sh", "-c", "mkdir -p /www; echo ok >/www/index.html; httpd -p 8080 -h /www; exec sleep "+payload)
	if _, err := timed(start); err != nil {
		return 0, err
	}
	defer timed(e.run("rm", "-f", "-t", "0", name))
	was := reaped()
	for range peerRuns {
		if _, err := timed(e.run("healthcheck", "run", name)); err != nil {
			return 0, err
		}
	}
	time.Sleep(time.Second) // let its background processes exit
	return (reaped() - was).Seconds() * 1000 / peerRuns, nil
}

// idling runs an idle pod, and returns the memory of its processes and what they write in a minute.
func (e *podrun) idling(file string) (pss, written int64, err error) {
	before := e.user.processes()
	if _, err := timed(e.run("up", "-d", file)); err != nil {
		return 0, 0, err
	}
	defer timed(e.run("down", shapes[0].name))
	if err := e.user.atRest(before); err != nil {
		return 0, 0, err
	}
	time.Sleep(idleDelay)
	was := e.user.written(before)
	time.Sleep(idleFor)
	return e.user.footprint(before).PSS, e.user.written(before) - was, nil
}

// used returns the processor time of the processes that were not there before, and of their
// reaped children, but without the containers' own processes.
func (p *account) used(before map[int]string) time.Duration {
	var sum time.Duration
	for pid, line := range p.processes() {
		if _, old := before[pid]; old || strings.Contains(line, payload) || strings.Contains(line, "httpd") {
			continue
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 14 {
			for _, ticks := range f[11:15] { // utime, stime, cutime, cstime: proc(5)
				n, _ := strconv.ParseInt(ticks, 10, 64)
				sum += time.Duration(n) * tick
			}
		}
	}
	return sum
}

// written returns what processes that were not there before have written to disks.
func (p *account) written(before map[int]string) int64 {
	var sum int64
	for pid := range p.processes() {
		if _, old := before[pid]; old {
			continue
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		for line := range strings.Lines(string(b)) {
			if text, ok := strings.CutPrefix(line, "write_bytes: "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				sum += n
			}
		}
	}
	return sum
}

// reaped returns the processor time of all descendants of this process that have exited.
func reaped() time.Duration {
	for { // orphans that this process has adopted
		var status unix.WaitStatus
		if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// lines returns the costs as rows of the table.
func (c *cost) lines() (lines []string) {
	for _, k := range probeKinds {
		a, b := c.Probe[k.name]["podrun"], c.Probe[k.name]["podman"]
		lines = append(lines, fmt.Sprintf("CPU ms for each probe, %s\t%.2f\t%.1f\t%s\t", k.name, a, b, quotient(a, b)),
			fmt.Sprintf("PSS in KiB, %d containers with %s every second\t%d\t\t\t", probed, k.name, c.ProbingPSS[k.name]))
	}
	return append(lines,
		fmt.Sprintf("PSS in KiB, idle for a minute\t%d\t\t\t", c.IdlePSS),
		fmt.Sprintf("bytes written in an idle minute\t%d\t\t\t", c.IdleWritten))
}
