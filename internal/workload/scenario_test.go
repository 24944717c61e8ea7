package workload

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/pod"
)

// TestScenarios runs the scenarios in testdata, one file each: a line that is not indented is a step
// or, with #, a comment; the output is indented below it.
//
//	spec KEY=VALUE…    the desired state changes; see set
//	bad REVISION       pods of this revision never get ready
//	+DURATION          time passes
//	ends POD CODE      a pod ends by itself
//	lost POD           a pod died with the machine
//	gone POD           a user has removed a pod
//	restarts POD N     containers of a pod have been restarted
//	stops POD          a pod that was stopped has ended
//	slow | quick       whether stopped pods take time to end
//	refuse TEXT | take whether pods can be made
//	job NAME well|ill  a Job of a CronJob ends
//	clock TIME         the time of day changes
//	status             prints the status
//	revisions          prints the kept revisions
//
// A pod is ready a second after it was made.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := runScenario(string(text))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, file, got)
		})
	}
}

func runScenario(text string) (string, error) {
	var b strings.Builder
	w := newWorld()
	w.log = func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		b.WriteString(line)
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := w.step(line); err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
	}
	return b.String(), nil
}

func (w *world) step(line string) error {
	words := strings.Fields(line)
	find := func() *Pod {
		i := slices.IndexFunc(w.pods, func(p Pod) bool { return p.Name == words[1] })
		if i < 0 {
			panic("there is no pod " + words[1])
		}
		return &w.pods[i]
	}
	switch words[0] {
	case "spec":
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if err := w.set(key, value); err != nil {
				return err
			}
		}
		w.spec.Generation++
	case "bad":
		w.bad[words[1]] = true
	case "ends":
		code, _ := strconv.Atoi(words[2])
		if err := w.ended(words[1], code); err != nil {
			return err
		}
	case "lost":
		if err := w.ended(words[1], 137); err != nil {
			return err
		}
		find().Ended = time.Time{}
	case "gone":
		find()
		w.pods = slices.DeleteFunc(w.pods, func(p Pod) bool { return p.Name == words[1] })
	case "condition":
		p := find()
		p.Conditions = append(p.Conditions, FailureCondition{words[2], "True"})
	case "restarts":
		find().Restarts, _ = strconv.Atoi(words[2])
		find().ExitCode = 1
	case "stops":
		find().Alive = false
	case "slow", "quick":
		w.linger = words[0] == "slow"
	case "refuse":
		w.refuse = words[1]
	case "take":
		w.refuse = ""
	case "job":
		for i := range w.jobs {
			if j := &w.jobs[i]; j.Name == words[1] {
				j.Over, j.Succeeded, j.Completed = true, words[2] == "well", w.now
			}
		}
	case "clock":
		moment, err := time.Parse(time.DateTime, words[1]+" "+words[2])
		if err != nil {
			return err
		}
		w.now = moment
	case "status":
		w.log("%s", w.status())
		return nil
	case "revisions":
		for _, r := range w.state.Revisions {
			w.log("%d %s: %s", r.Number, r.Name, r.Cause)
		}
		return nil
	default:
		d, err := time.ParseDuration(strings.TrimPrefix(words[0], "+"))
		if err != nil {
			return err
		}
		return w.pass(d)
	}
	return w.settle()
}

// set changes one field of the spec.
func (w *world) set(key, value string) error {
	s := &w.spec
	n, _ := strconv.Atoi(value)
	d, _ := time.ParseDuration(value)
	yes := value == "true"
	switch key {
	case "kind":
		*s = Spec{Kind: pod.ObjectKind(value), Name: "w", Revision: "a", Replicas: 1, Strategy: Rolling, History: 10}
		s.Job = JobSpec{Parallelism: 1, Completions: 1, BackoffLimit: 6, TTL: -1, BackoffPerIndex: -1, MaxFailedIndexes: -1}
		s.Cron = CronSpec{StartingDeadline: -1, Concurrency: Allow, KeepSucceeded: 3, KeepFailed: 1, Created: start}
	case "rev":
		s.Revision = value
	case "cause":
		s.Cause = value
	case "replicas":
		s.Replicas = n
	case "strategy":
		s.Strategy = Strategy(value)
	case "surge":
		s.MaxSurge = n
	case "unavailable":
		s.MaxUnavailable = n
	case "minReady":
		s.MinReady = d
	case "deadline":
		s.ProgressDeadline, s.Job.ActiveDeadline = d, d
	case "paused":
		s.Paused = yes
	case "history":
		s.History = n
	case "partition":
		s.Partition = n
	case "first":
		s.FirstOrdinal = n
	case "parallel":
		s.Parallel = yes
	case "deleting":
		s.Deleting = yes
	case "parallelism":
		s.Job.Parallelism = n
	case "completions":
		s.Job.Completions = n
	case "backoffLimit":
		s.Job.BackoffLimit = n
	case "indexed":
		s.Job.Indexed = yes
	case "perIndex":
		s.Job.BackoffPerIndex, s.Job.BackoffLimit = n, math.MaxInt32
	case "maxFailed":
		s.Job.MaxFailedIndexes = n
	case "rule":
		s.Job.FailureRules = append(s.Job.FailureRules, failureRule(value))
	case "enough":
		s.Job.SuccessRules = append(s.Job.SuccessRules, successRule(value))
	case "suspend":
		s.Job.Suspend, s.Cron.Suspend = yes, yes
	case "onFailure":
		s.Job.OnFailure = yes
	case "replaceFailed":
		s.Job.ReplaceFailed = yes
	case "ttl":
		s.Job.TTL = d
	default:
		return setCron(&s.Cron, key, value)
	}
	return nil
}

// setCron changes one field of a CronJob's spec.
func setCron(c *CronSpec, key, value string) error {
	n, _ := strconv.Atoi(value)
	d, _ := time.ParseDuration(value)
	switch key {
	case "created":
		c.Created = start.Add(d)
	case "schedule":
		c.Schedule = strings.ReplaceAll(value, "_", " ")
	case "zone":
		zone, err := time.LoadLocation(value)
		c.Zone = zone
		return err
	case "startingDeadline":
		c.StartingDeadline = d
	case "concurrency":
		c.Concurrency = Concurrency(value)
	case "keep":
		c.KeepSucceeded, c.KeepFailed = n, n
	default:
		return fmt.Errorf("there is no field %s", key)
	}
	return nil
}
