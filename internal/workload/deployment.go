package workload

import (
	"cmp"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// deployment handles a Deployment, a ReplicaSet or a ReplicationController; the pods of the last two may be of
// any revision.
func (d *decider) deployment() {
	newest := d.newest()
	switch {
	case d.spec.Kind.IsReplicaSet():
		d.replicaSet()
		return
	case d.spec.Paused:
		d.rescale()
	case d.spec.Strategy == Recreate:
		for i := range d.State.Revisions {
			d.State.Revisions[i].Replicas = 0
		}
		if !d.outdated() {
			newest.Replicas = d.spec.Replicas
		}
	default:
		for d.roll() { // removed pods free capacity for new ones
		}
	}
	for i := range d.State.Revisions {
		r := &d.State.Revisions[i]
		d.fill(d.podsOf(r.Name), r.Replicas, r.Name)
	}
	for i := range d.pods { // of a revision that is no longer in the history
		p := &d.pods[i]
		known := slices.ContainsFunc(d.State.Revisions, func(r Revision) bool { return r.Name == p.Revision })
		if !known && p.active() {
			d.remove(p)
		}
	}
}

// replicaSet keeps the number of replicas; only new pods use the newest template.
func (d *decider) replicaSet() {
	var all []*Pod
	for i := range d.pods {
		if d.pods[i].active() {
			all = append(all, &d.pods[i])
		}
	}
	d.newest().Replicas = d.spec.Replicas
	d.fill(all, d.spec.Replicas, d.spec.Revision)
}

// outdated reports whether there is a pod of another revision that may still be active.
func (d *decider) outdated() bool {
	return slices.ContainsFunc(d.pods, func(p Pod) bool {
		return p.Revision != d.spec.Revision && (p.Alive || p.active())
	})
}

// podsOf returns the pods of a revision that count, oldest first.
func (d *decider) podsOf(revision string) []*Pod {
	var list []*Pod
	for i := range d.pods {
		if p := &d.pods[i]; p.Revision == revision && p.active() {
			list = append(list, p)
		}
	}
	return list
}

// availableOf returns the number of available pods of a revision.
func (d *decider) availableOf(revision string) int {
	n := 0
	for _, p := range d.podsOf(revision) {
		if ok, _ := p.available(d.spec.MinReady, d.now); ok {
			n++
		}
	}
	return n
}

// rescale handles a paused Deployment: the number of replicas changes, no revision does, and during
// a roll-out the surge stays. The largest revision gains missing pods; the largest revisions in
// turn lose surplus pods.
func (d *decider) rescale() {
	for {
		total, used, largest := 0, 0, d.newest()
		for i := range d.State.Revisions {
			r := &d.State.Revisions[i]
			total += r.Replicas
			if r.Replicas > 0 {
				used++
			}
			if r.Replicas > largest.Replicas {
				largest = r
			}
		}
		most := d.spec.Replicas
		if used > 1 && most > 0 {
			most += d.spec.MaxSurge
		}
		switch {
		case total < d.spec.Replicas:
			largest.Replicas += d.spec.Replicas - total
		case total > most:
			largest.Replicas = max(0, largest.Replicas+most-total)
		default:
			return
		}
	}
}

// roll moves sizes from the old revisions to the newest, within the bounds (rolloutRolling in
// pkg/controller/deployment/rolling.go). It reports whether it moved any.
func (d *decider) roll() (moved bool) {
	newest, old := d.newest(), d.State.Revisions[:len(d.State.Revisions)-1]
	total := func() int {
		n := 0
		for _, r := range d.State.Revisions {
			n += r.Replicas
		}
		return n
	}
	if newest.Replicas > d.spec.Replicas {
		newest.Replicas, moved = d.spec.Replicas, true
	} else if more := min(d.spec.Replicas+d.spec.MaxSurge-total(), d.spec.Replicas-newest.Replicas); more > 0 {
		newest.Replicas, moved = newest.Replicas+more, true
	}
	for i := range d.State.Revisions { // a smaller size: missing pods are not replaced
		r := &d.State.Revisions[i]
		cut := min(total()-d.spec.Replicas-d.spec.MaxSurge, r.Replicas-len(d.podsOf(r.Name)))
		if cut > 0 {
			r.Replicas, moved = r.Replicas-cut, true
		}
	}
	needed := d.spec.Replicas - d.spec.MaxUnavailable
	may := total() - needed - (newest.Replicas - d.availableOf(newest.Name))
	for i := range old { // unavailable pods go first: they serve no traffic
		r := &old[i]
		gone := min(may, r.Replicas-d.availableOf(r.Name))
		if gone > 0 {
			r.Replicas -= gone
			may -= gone
			moved = true
		}
	}
	if may <= 0 {
		return moved
	}
	spare := d.availableOf(newest.Name) - needed
	for _, r := range old {
		spare += min(r.Replicas, d.availableOf(r.Name))
	}
	for i := range old {
		gone := min(spare, may, old[i].Replicas)
		if gone > 0 {
			old[i].Replicas -= gone
			spare -= gone
			may -= gone
			moved = true
		}
	}
	return moved
}

// fill brings the number of pods to a size.
func (d *decider) fill(have []*Pod, size int, revision string) {
	switch {
	case len(have) > size:
		slices.SortStableFunc(have, worse)
		for _, p := range have[:len(have)-size] {
			d.remove(p)
		}
	case len(have) < size && !d.mustWait():
		for range size - len(have) {
			d.Make = append(d.Make, Make{Revision: revision, Index: -1})
		}
	}
}

// worse orders pods for removal (ActivePodsWithRanks in pkg/controller): pending before running,
// not ready before ready, ready for a shorter time, restarted more often, younger.
func worse(a, b *Pod) int {
	rank := func(p *Pod) int {
		switch {
		case p.Phase == pod.Pending:
			return 0
		case !p.Ready:
			return 1
		}
		return 2
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	if a.Ready && b.Ready {
		if c := b.ReadyAt.Compare(a.ReadyAt); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(b.Restarts, a.Restarts), b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
}
