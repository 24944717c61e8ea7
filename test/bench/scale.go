package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	scaleLooks = 5                // ps, and starts that are compared
	scaleRest  = time.Minute      // until supervisors have found out that dozing between probes does not pay
	scaleIdle  = 30 * time.Second // while processors' time is counted
)

// psAt are the numbers of pods with which ps is measured.
var psAt = []int{10, 50, 100}

// peerMost is how many pods the peer is given: each takes it seconds on a busy machine.
const peerMost = 50

// scale is what many pods cost, of three containers each, of which one is probed every 10 s.
type scale struct {
	Pods       int             `json:"pods"`
	Containers int             `json:"containers"`
	Ups        []float64       `json:"upMilliseconds"` // of every pod, in turn
	First      float64         `json:"firstPods"`      // median of the first few, in milliseconds
	Last       float64         `json:"lastPods"`       // of a few more than Pods
	IdleCPU    float64         `json:"idleCPUPercent"` // of one processor
	PSS        map[int]int64   `json:"pssKiB"`         // by the number of pods
	Ps         map[int]summary `json:"ps"`             // podrun's; the peer's are in the report's times
}

// measureScale brings up pods, up to n and a few more.
func measureScale(who *person, ours *podrun, peer *podman, pods string, n int) (*scale, map[int]summary, error) {
	s := &scale{Pods: n, Containers: 3 * n, PSS: map[int]int64{}, Ps: map[int]summary{}}
	theirs := map[int]summary{}
	before := who.processes()
	place := filepath.Dir(pods) // in the arguments of every process of podrun's
	defer downAll(ours, n+scaleLooks)
	defer peer.close()
	for i := 1; i <= n+scaleLooks; i++ {
		if i == n+1 {
			if err := s.idle(who, before, place); err != nil {
				return nil, nil, err
			}
		}
		took, err := ours.upScaled(pods, i)
		if err != nil {
			return nil, nil, err
		}
		s.Ups = append(s.Ups, float64(took.Microseconds())/1000)
		if i <= peerMost {
			if err := peer.oneMore(i); err != nil {
				return nil, nil, err
			}
		}
		for _, at := range psAt {
			if i != at {
				continue
			}
			s.PSS[i] = who.footprint(who.others(before, place)).PSS
			if s.Ps[i], err = looks(ours); err == nil && i <= peerMost {
				theirs[i], err = looks(peer)
			}
			if err != nil {
				return nil, nil, err
			}
			fmt.Fprintf(os.Stderr, "bench: %d pods\n", i)
		}
	}
	// The very first one finds a cold machine.
	s.First, s.Last = middle(s.Ups[1:1+scaleLooks]), middle(s.Ups[n:])
	return s, theirs, nil
}

func middle(ms []float64) float64 {
	var list []time.Duration
	for _, m := range ms {
		list = append(list, time.Duration(m*float64(time.Millisecond)))
	}
	return summarise(list).Median
}

func looks(e engine) (summary, error) {
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

// idle counts the processors' time of what is there, containers' own processes aside.
func (s *scale) idle(who *person, before map[int]string, place string) error {
	time.Sleep(scaleRest)
	was := who.used(who.others(before, place))
	time.Sleep(scaleIdle)
	s.IdleCPU = 100 * (who.used(who.others(before, place)) - was).Seconds() / scaleIdle.Seconds()
	return nil
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

// oneMore makes a pod of the peer's, which is only listed.
func (e *podman) oneMore(i int) error {
	_, err := timed(e.run("pod", "create", "--name", scaledName(i), "--infra=false"))
	return err
}

func downAll(e *podrun, n int) {
	words := []string{"down", "--force"}
	for i := 1; i <= n; i++ {
		words = append(words, scaledName(i))
	}
	e.run(words...).Run() // fails for those that were never there
}

// others are those that were there before, and those in whose arguments a word is not.
func (p *person) others(before map[int]string, word string) map[int]string {
	all := maps.Clone(before)
	for pid, words := range p.processes() {
		if !strings.Contains(words, word) {
			all[pid] = words
		}
	}
	return all
}

// lines are the scale as rows of the table.
func (s *scale) lines() []string {
	if s == nil {
		return nil
	}
	lines := []string{
		fmt.Sprintf("up of pod %d / of pod 2, ms\t%.0f\t%.0f\t%s\t", s.Pods+1, s.Last, s.First, quotient(s.Last, s.First)),
		fmt.Sprintf("CPU of %d pods, each probed every 10 s, %% of one\t%.2f\t\t\t", s.Pods, s.IdleCPU),
	}
	for _, at := range psAt {
		if pss, ok := s.PSS[at]; ok {
			lines = append(lines, fmt.Sprintf("PSS in KiB, %d pods\t%d\t\t\t", at, pss))
		}
	}
	return lines
}
