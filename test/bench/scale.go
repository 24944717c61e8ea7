package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	scaleLooks = 5                // runs of ps
	scaleLives = 7                // starts of one more pod
	scaleRest  = time.Minute      // until supervisors have found out that hibernating between probes does not pay
	scaleProbe = 10 * time.Second // from a probe to the next
	scaleIdle  = 6                // such intervals while processor time is counted
)

// psAt are the numbers of pods with which ps is measured.
var psAt = []int{1, 10, 50, 100}

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

// measureScale starts n pods and measures them; one more pod is started beside the first alone,
// beside all, and beside the first alone again, because a machine's speed changes within minutes.
func measureScale(who *account, ours *podrun, peer *podman, pods string, n int) (*scale, map[int]summary, error) {
	s := &scale{Pods: n, Containers: 3 * n, PSS: map[int]int64{}, Ps: map[int]summary{}}
	theirs := map[int]summary{}
	before := who.processes()
	place := filepath.Dir(pods) // in the arguments of every process of podrun
	defer ours.downScaled(1, n)
	defer peer.close()
	var few, many []time.Duration
	for i := 1; i <= n; i++ {
		took, err := ours.upScaled(pods, i)
		if err == nil {
			s.Ups = append(s.Ups, float64(took.Microseconds())/1000)
			err = peer.oneMore(i)
		}
		if err == nil && slices.Contains(psAt, i) {
			s.PSS[i] = who.footprint(who.others(before, place)).PSS
			if s.Ps[i], err = countPs(ours); err == nil {
				theirs[i], err = countPs(peer)
			}
			fmt.Fprintf(os.Stderr, "bench: %d pods\n", i)
		}
		if err == nil && i == 1 {
			few, err = ours.lives(who, pods)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	s.idle(who, before, place)
	many, err := ours.lives(who, pods)
	if err != nil {
		return nil, nil, err
	}
	ours.downScaled(2, n)
	again, err := ours.lives(who, pods)
	if err != nil {
		return nil, nil, err
	}
	s.Few, s.Many = summarise(append(few, again...)), summarise(many)
	return s, theirs, nil
}

// lives returns how long starting one more pod of three containers takes, repeatedly, each after
// the previous one is gone. The first run only warms up.
func (e *podrun) lives(who *account, pods string) ([]time.Duration, error) {
	const name = "one-more"
	file := filepath.Join(pods, name+".yaml")
	text := strings.Replace(header, "NAME", name, 1) + containers("main", "b", "c")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	time.Sleep(idleDelay) // let what was started or stopped before come to rest
	var times []time.Duration
	for range scaleLives + 1 {
		before := who.processes()
		took, err := timed(e.up(name, file))
		if err == nil {
			err = who.atRest(before)
		}
		if _, derr := timed(e.down(name, file)); err == nil {
			err = derr
		}
		if err == nil {
			err = who.without(name)
		}
		if err != nil {
			return nil, fmt.Errorf("start one more pod: %w", err)
		}
		times = append(times, took)
	}
	return times[1:], nil
}

// without waits until no process has a word in its arguments. Other processes come and go: the
// supervisors of probed pods.
func (p *account) without(word string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := 0
		for pid, words := range p.processes() {
			if strings.Contains(words, word) && !hasEnded(pid) {
				n++
			}
		}
		if n == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a minute after the pod was removed there are %d processes of %s", n, word)
		}
	}
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
func (s *scale) idle(who *account, before map[int]string, place string) {
	time.Sleep(scaleRest)
	others := who.others(before, place)
	start, began := who.used(others), time.Now()
	was, from := start, began
	for i := range scaleIdle {
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * scaleProbe)))
		used, now := who.used(who.others(before, place)), time.Now()
		s.IdleCPUs = append(s.IdleCPUs, 100*(used-was).Seconds()/now.Sub(from).Seconds())
		was, from = used, now
	}
	s.IdleCPU = 100 * (was - start).Seconds() / from.Sub(began).Seconds()
}

// psTask names the task of listing so many pods.
func psTask(pods int) string {
	if pods == 1 {
		return "ps, 1 pod"
	}
	return fmt.Sprintf("ps, %d pods", pods)
}

func scaledName(i int) string { return fmt.Sprintf("scaled-%d", i) }

// upScaled starts a pod of three containers.
func (e *podrun) upScaled(pods string, i int) (time.Duration, error) {
	text := strings.Replace(header, "NAME", scaledName(i), 1) + fmt.Sprintf(`  containers:
  - name: main
    image: %s
    imagePullPolicy: Never
    command: [/bin/sh, -c, "mkdir -p /www; echo ok >/www/index.html; httpd -p 8080 -h /www; exec sleep %s"]
    readinessProbe: {periodSeconds: 10, timeoutSeconds: 10, httpGet: {port: 8080}}
`, image, payload) + strings.TrimPrefix(containers("b", "c"), "  containers:\n")
	file := filepath.Join(pods, scaledName(i)+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, err
	}
	return timed(e.run("up", "-d", file))
}

// oneMore makes a pod of the peer that is only listed.
func (e *podman) oneMore(i int) error {
	_, err := timed(e.run("pod", "create", "--name", scaledName(i), "--infra=false"))
	return err
}

// downScaled removes those pods of upScaled that exist.
func (e *podrun) downScaled(first, last int) {
	words := []string{"down", "--force"}
	for i := first; i <= last; i++ {
		words = append(words, scaledName(i))
	}
	e.run(words...).Run() // fails for those that never existed
}

// others returns the processes that were there before, and those without a word in their arguments.
func (p *account) others(before map[int]string, word string) map[int]string {
	all := maps.Clone(before)
	for pid, words := range p.processes() {
		if !strings.Contains(words, word) {
			all[pid] = words
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
	for _, at := range psAt {
		if pss, ok := s.PSS[at]; ok {
			lines = append(lines, fmt.Sprintf("PSS in KiB, %d pods\t%d\t\t\t", at, pss))
		}
	}
	return lines
}
