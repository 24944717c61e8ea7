package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// statefulSet keeps pods with stable names (updateStatefulSet in
// pkg/controller/statefulset/stateful_set_control.go). With ordered management it makes or removes
// the next pod only when all others are available.
func (d *decider) statefulSet() {
	s := d.spec
	d.newest().Replicas = s.Replicas
	if d.State.Current == "" {
		d.State.Current = s.Revision
	}
	byOrdinal := map[int]*Pod{}
	var beyond []*Pod
	for i := range d.pods {
		p := &d.pods[i]
		if p.Index >= s.FirstOrdinal && p.Index < s.FirstOrdinal+s.Replicas {
			byOrdinal[p.Index] = p
		} else {
			beyond = append(beyond, p)
		}
	}
	whole := d.build(byOrdinal)
	if whole || s.Parallel {
		whole = d.shrink(beyond, byOrdinal) && whole
	}
	if (whole || s.Parallel) && s.Strategy != OnDelete && d.replace(byOrdinal) && whole && s.Partition == 0 {
		d.State.Current = s.Revision
	}
}

// replace removes outdated pods, the highest ordinal first, as many as may be unavailable at once,
// counting those that are (updateStatefulSetAfterInvariantEstablished). With parallel management
// all unavailable pods go first: that costs no availability. It reports whether all are up to date
// and available.
func (d *decider) replace(have map[int]*Pod) bool {
	s := d.spec
	budget, done := max(s.MaxUnavailable, 1), true
	var outdated []*Pod
	for i := s.FirstOrdinal + s.Replicas - 1; i >= s.FirstOrdinal; i-- {
		p := have[i]
		missing := p == nil || !d.healthy(p)
		if missing {
			budget, done = budget-1, false
		}
		switch {
		case p == nil || !p.active() || p.Revision == s.Revision || i < s.FirstOrdinal+s.Partition:
			continue
		case missing && s.Parallel:
			d.remove(p)
		default:
			outdated = append(outdated, p)
		}
		done = false
	}
	for _, p := range outdated[:min(len(outdated), max(budget, 0))] {
		d.remove(p)
	}
	return done
}

// healthy reports whether a pod lets the next one proceed.
func (d *decider) healthy(p *Pod) bool {
	ok, _ := p.available(d.spec.MinReady, d.now)
	return ok
}

// revisionAt returns the revision of a new pod.
func (d *decider) revisionAt(ordinal int) string {
	if d.spec.Strategy == Rolling && ordinal-d.spec.FirstOrdinal < d.spec.Partition {
		return d.State.Current
	}
	return d.spec.Revision
}

// build makes the missing pods. It reports whether all exist and, with ordered management, are
// available.
func (d *decider) build(have map[int]*Pod) bool {
	whole := true
	for i := d.spec.FirstOrdinal; i < d.spec.FirstOrdinal+d.spec.Replicas; i++ {
		p := have[i]
		switch {
		case p == nil && !d.mustWait():
			d.Make = append(d.Make, Make{Name: fmt.Sprintf("%s-%d", d.spec.Name, i), Revision: d.revisionAt(i), Index: i})
			whole = false
		case p == nil || !p.active():
			whole = false
		case d.healthy(p) || d.spec.Parallel:
			continue
		}
		if !d.spec.Parallel {
			return false
		}
	}
	return whole
}

// shrink removes pods beyond the desired ordinals, the highest first.
func (d *decider) shrink(beyond []*Pod, have map[int]*Pod) bool {
	if len(beyond) == 0 {
		return true
	}
	slices.SortFunc(beyond, func(a, b *Pod) int { return cmp.Compare(b.Index, a.Index) })
	for _, p := range beyond {
		switch {
		case p.active():
			d.remove(p)
		case p.Alive && !d.spec.Parallel:
			return false
		}
		if !d.spec.Parallel {
			return false
		}
	}
	return len(have) == d.spec.Replicas && !slices.ContainsFunc(beyond, func(p *Pod) bool { return p.Alive })
}
