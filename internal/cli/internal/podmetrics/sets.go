package podmetrics

import (
	"bytes"
	"errors"

	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/store"
)

// setStatus is a set as its metrics show it.
type setStatus struct {
	name string
	*store.Set
	current store.SetVersion // empty if there is none
	changes bool             // a process changes it now
}

// addSets writes the state of sets (podrun follow).
func (c *Collector) addSets(out *bytes.Buffer) error {
	names, err := c.Dirs.Sets()
	errs := []error{err}
	var sets []setStatus
	for _, name := range names {
		record, err := c.Dirs.Set(name)
		errs = append(errs, err)
		if record == nil { // removed meanwhile, or not read
			continue
		}
		s := setStatus{name: name, Set: record, changes: record.State != store.SetSettled && c.Dirs.SetChanging(name)}
		if record.Current != nil {
			s.current = *record.Current
		}
		sets = append(sets, s)
	}
	writeFamilies(out, sets, setFamilies(), func(s setStatus) []string { return []string{"set", s.name} })
	return errors.Join(errs...)
}

func setFamilies() []family[setStatus] {
	type s = setStatus
	const prefix = "podrun_follow_"
	return []family[s]{
		{prefix + "info", metric.Gauge, "Information about the set and its last version that was ready.", func(s s) []*metric.Metric {
			return one(1, "source", s.Source, "digest", s.current.Digest, "revision", s.current.Revision, "version", s.current.Version)
		}},
		{prefix + "state", metric.Gauge, "1 for the state of the set: settled, or a change that is tried, undone, or interrupted.", setStates},
		{prefix + "ready", metric.Gauge, "1 if the set is settled at a version.", func(s s) []*metric.Metric {
			return one(oneIf(s.State == store.SetSettled && s.Current != nil), "digest", s.current.Digest)
		}},
		{prefix + "last_change_timestamp_seconds", metric.Gauge, "When the last change has ended, and how.", func(s s) []*metric.Metric {
			if len(s.History) == 0 {
				return nil
			}
			last := s.History[len(s.History)-1]
			return one(float64(last.At.Unix()), "result", string(last.Result))
		}},
		{prefix + "rejected", metric.Gauge, "1 for a version that is not tried again.", func(s s) (all []*metric.Metric) {
			digests := map[string]bool{}
			for _, r := range s.Rejected { // the same digest with other variables is another version
				if !digests[r.Digest] {
					all = append(all, one(1, "digest", r.Digest)...)
				}
				digests[r.Digest] = true
			}
			return all
		}},
	}
}

// setStates returns a series for each state. A change that no process makes is interrupted.
func setStates(s setStatus) (all []*metric.Metric) {
	const interrupted = "interrupted"
	is := string(s.State)
	if s.State != store.SetSettled && !s.changes {
		is = interrupted
	}
	for _, state := range []string{string(store.SetSettled), string(store.SetTrying), string(store.SetReturning), interrupted} {
		all = append(all, one(oneIf(state == is), "state", state)...)
	}
	return all
}
