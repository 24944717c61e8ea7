package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

const (
	scaleLooks  = 5                // runs of ps
	scaleStarts = 7                // starts of one more pod
	scaleRest   = time.Minute      // until supervisors have found out that hibernating between probes does not pay
	scaleProbe  = 10 * time.Second // from a probe to the next
	scaleIdle   = 6                // such intervals while processor time is counted

	atOnce     = 100 // pods in one manifest
	atOnceRuns = 3
)

// psAt are the numbers of pods with which ps is measured.
var psAt = []int{1, 10, 50, 100, 300}

// atOnceTask is the start of all pods of one manifest by one command.
var atOnceTask = "up, " + podCount(atOnce) + " of one manifest"

// scale is the cost of many pods, of three containers each, of which one is probed every 10 s.
type scale struct {
	Pods       int             `json:"pods"`
	Containers int             `json:"containers"`
	Ups        []float64       `json:"upMilliseconds"`    // of every pod, in order
	Few        summary         `json:"upBesideOne"`       // of one more pod beside a single one, before all others and after
	Many       summary         `json:"upBesideAll"`       // of one more pod beside all of them
	IdleCPU    float64         `json:"idleCPUPercent"`    // of one processor
	IdleCPUs   []float64       `json:"idleCPUPercentsBy"` // for each interval between probes
	PSS        map[int]int64   `json:"pssKiB"`            // by the number of pods
	Ps         map[int]summary `json:"ps"`                // podrun's; the peer's are in the report's times
}

// measureScale starts many pods and measures them; one more pod is started beside the first alone,
// beside all, and beside the first alone again, because a machine's speed changes within minutes.
func (b *bench) measureScale(r *report) error {
	if b.scale == 0 {
		return nil
	}
	if err := b.measureAtOnce(r); err != nil {
		return err
	}
	n := b.scale
	s := &scale{Pods: n, Containers: 3 * n, PSS: map[int]int64{}, Ps: map[int]summary{}}
	theirs := map[int]summary{}
	before := b.user.processes()
	defer b.ours.downScaled(1, n)
	defer b.peer.close()
	var few []time.Duration
	for i := 1; i <= n; i++ {
		if err := b.startScaled(s, i); err != nil {
			return err
		}
		if slices.Contains(psAt, i) {
			s.PSS[i] = b.user.footprint(b.user.others(before, b.work)).PSS // the directory is in the arguments of every process of podrun
			var err1, err2 error
			s.Ps[i], err1 = countPs(b.ours)
			theirs[i], err2 = countPs(b.peer)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "bench: %d pods\n", i)
		}
		if i == 1 {
			var err error
			if few, err = b.startOneMore(); err != nil {
				return err
			}
		}
	}
	s.idle(b.user, before, b.work)
	many, err := b.startOneMore()
	if err != nil {
		return err
	}
	b.ours.downScaled(2, n)
	again, err := b.startOneMore()
	if err != nil {
		return err
	}
	s.Few, s.Many = summarise(append(few, again...)), summarise(many)
	r.addScale(s, theirs)
	return nil
}

// measureAtOnce measures the start of many pods of one container by one command, with both engines in turn.
func (b *bench) measureAtOnce(r *report) error {
	var docs []string
	for i := range atOnce {
		docs = append(docs, strings.Replace(header, "NAME", fmt.Sprintf("at-once-%d", i+1), 1)+containers("main"))
	}
	const name = "at-once"
	file := b.manifest(name)
	if err := os.WriteFile(file, []byte(strings.Join(docs, "---\n")), 0o644); err != nil {
		return err
	}
	times := map[string][]time.Duration{}
	for range atOnceRuns {
		for _, e := range b.engines() {
			took, err := timed(e.up(name, file))
			down := e.down(name, file)
			if e == engine(b.ours) {
				down = b.ours.run("down", "-f", file)
			}
			_, derr := timed(down)
			if err := errors.Join(err, derr); err != nil {
				return fmt.Errorf("start %d pods at once: %w", atOnce, err)
			}
			times[e.name()] = append(times[e.name()], took)
			fmt.Fprintf(os.Stderr, "bench: %s, %s: %.1f s\n", e.name(), atOnceTask, took.Seconds())
		}
	}
	for engine, took := range times {
		put(r.Times, atOnceTask, engine, summarise(took))
	}
	return nil
}

// startScaled starts the pod of podrun with a number, and makes the peer's.
func (b *bench) startScaled(s *scale, i int) error {
	took, err := b.upScaled(i)
	if err != nil {
		return err
	}
	s.Ups = append(s.Ups, measure.Milliseconds(took))
	return b.peer.oneMore(i)
}

// addScale adds the figures. With single pods ps is measured more often.
func (r *report) addScale(s *scale, theirs map[int]summary) {
	r.Scale = s
	for n, ps := range s.Ps {
		task := psTask(n)
		if _, measured := r.Times[task]; !measured {
			put(r.Times, task, "podrun", ps)
			put(r.Times, task, "podman", theirs[n])
		}
	}
}

// startOneMore returns how long starting one more pod of three containers takes, repeatedly, each after
// the previous one is gone. The first run only warms up.
func (b *bench) startOneMore() ([]time.Duration, error) {
	const name = "one-more"
	file := b.manifest(name)
	text := strings.Replace(header, "NAME", name, 1) + containers("main", "b", "c")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	time.Sleep(idleDelay) // let what was started or stopped before come to rest
	var times []time.Duration
	for range scaleStarts + 1 {
		before := b.user.processes()
		took, err := timed(b.ours.up(name, file))
		if err == nil {
			err = b.user.atRest(before)
		}
		if _, derr := timed(b.ours.down(name, file)); err == nil {
			err = derr
		}
		if err == nil { // other processes come and go: the supervisors of probed pods
			err = b.user.awaitNone(func(_ int, line string) bool { return strings.Contains(line, name) })
		}
		if err != nil {
			return nil, fmt.Errorf("start one more pod: %w", err)
		}
		times = append(times, took)
	}
	return times[1:], nil
}

func countPs(e engine) (summary, error) {
	var times []time.Duration
	for range scaleLooks {
		took, err := timed(e.ps())
		if err != nil {
			return summary{}, err
		}
		times = append(times, took)
	}
	return summarise(times), nil
}

// idle counts the processor time of the running processes, without the containers' own, for each
// interval between probes: each pod has one probe per interval.
func (s *scale) idle(user *account, before map[int]string, dir string) {
	time.Sleep(scaleRest)
	others := user.others(before, dir)
	start, began := user.used(others), time.Now()
	was, from := start, began
	for i := range scaleIdle {
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * scaleProbe)))
		used, now := user.used(user.others(before, dir)), time.Now()
		s.IdleCPUs = append(s.IdleCPUs, 100*(used-was).Seconds()/now.Sub(from).Seconds())
		was, from = used, now
	}
	s.IdleCPU = 100 * (was - start).Seconds() / from.Sub(began).Seconds()
}

// psTask names the task of listing so many pods.
func psTask(pods int) string { return "ps, " + podCount(pods) }

func podCount(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func scaledName(i int) string { return fmt.Sprintf("scaled-%d", i) }

// upScaled starts a pod of three containers.
func (b *bench) upScaled(i int) (time.Duration, error) {
	text := strings.Replace(header, "NAME", scaledName(i), 1) + fmt.Sprintf(`  containers:
  - name: main
    image: %s
    imagePullPolicy: Never
    command: [/bin/sh, -c, "mkdir -p /www; echo ok >/www/index.html; httpd -p 8080 -h /www; exec sleep %s"]
    readinessProbe: {periodSeconds: 10, timeoutSeconds: 10, httpGet: {port: 8080}}
`, image, payload) + strings.TrimPrefix(containers("b", "c"), "  containers:\n")
	file := b.manifest(scaledName(i))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, err
	}
	return timed(b.ours.run("up", "-d", file))
}

// oneMore makes a pod of the peer that is only listed.
func (e *podman) oneMore(i int) error {
	_, err := timed(e.run("pod", "create", "--name", scaledName(i), "--infra=false"))
	return err
}

// downScaled removes those pods of upScaled that exist.
func (e *podrun) downScaled(first, last int) {
	args := []string{"down", "--force"}
	for i := first; i <= last; i++ {
		args = append(args, scaledName(i))
	}
	e.run(args...).Run() // fails for those that never existed
}

// others returns the processes that were there before, and those whose arguments do not contain dir.
func (p *account) others(before map[int]string, dir string) map[int]string {
	all := maps.Clone(before)
	for pid, line := range p.processes() {
		if !strings.Contains(line, dir) {
			all[pid] = line
		}
	}
	return all
}

// idleText formats the processor time at rest, and its range over the intervals.
func (s *scale) idleText() string {
	if len(s.IdleCPUs) == 0 {
		return fmt.Sprintf("%.2f", s.IdleCPU)
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", s.IdleCPU, slices.Min(s.IdleCPUs), slices.Max(s.IdleCPUs))
}

// lines returns the scale as rows of the table.
func (s *scale) lines() []string {
	if s == nil {
		return nil
	}
	lines := []string{
		fmt.Sprintf("up of pod %d / of pod 2, ms\t%s\t%s\t%s\t", s.Pods+1, s.Many, s.Few, quotient(s.Many.Median, s.Few.Median)),
		fmt.Sprintf("CPU of %d pods, each probed every 10 s, %% of one\t%s\t\t\t", s.Pods, s.idleText()),
	}
	for _, count := range psAt {
		if pss, ok := s.PSS[count]; ok {
			lines = append(lines, fmt.Sprintf("PSS in KiB, %d pods\t%d\t\t\t", count, pss))
		}
	}
	return lines
}
