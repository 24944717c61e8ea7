package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// statefulSet keeps up pods with names of their own (updateStatefulSet in
// pkg/controller/statefulset/stateful_set_control.go). In order, that is one after the
// other: the next is made or removed when all others are available.
func (d *decider) statefulSet() {
	s := d.spec
	d.newest().Size = s.Replicas
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
	if !d.build(byOrdinal) || !d.shrink(beyond, byOrdinal) || s.Strategy == OnDelete {
		return
	}
	for i := s.FirstOrdinal + s.Replicas - 1; i >= s.FirstOrdinal+s.Partition; i-- {
		switch p := byOrdinal[i]; {
		case p == nil || !p.active():
			return
		case p.Revision != s.Revision:
			d.remove(p)
			return
		case !d.healthy(p):
			return
		}
	}
	if s.Partition == 0 {
		d.State.Current = s.Revision
	}
}

// healthy says whether a pod lets the next one have its turn.
func (d *decider) healthy(p *Pod) bool {
	ok, _ := p.available(d.spec.MinReady, d.now)
	return ok
}

// revisionAt is the version of a new pod.
func (d *decider) revisionAt(ordinal int) string {
	if d.spec.Strategy == Rolling && ordinal-d.spec.FirstOrdinal < d.spec.Partition {
		return d.State.Current
	}
	return d.spec.Revision
}

// build makes the pods that are missing; it says whether all are there, and in order
// whether all are available.
func (d *decider) build(have map[int]*Pod) bool {
	whole := true
	for i := d.spec.FirstOrdinal; i < d.spec.FirstOrdinal+d.spec.Replicas; i++ {
		p := have[i]
		switch {
		case p == nil && !d.held():
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

// shrink removes pods with ordinals that are not wanted, the highest first.
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
