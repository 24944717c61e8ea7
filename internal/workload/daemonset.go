package workload

// daemonSet keeps one pod running: there is one machine.
func (d *decider) daemonSet() {
	d.newest().Replicas = d.spec.Replicas
	var active, outdated []*Pod
	busy := false
	for i := range d.pods {
		p := &d.pods[i]
		switch {
		case p.active() && p.Revision != d.spec.Revision && d.spec.Strategy == Rolling:
			outdated = append(outdated, p)
		case p.active():
			active = append(active, p)
		case p.Alive:
			busy = true // two pods at a time would share the machine's resources
		}
	}
	switch {
	case len(outdated) == 0:
	case d.spec.MaxSurge > 0 && len(active) == 0: // the new one first
		if !d.mustWait() {
			d.Make = append(d.Make, Make{Revision: d.spec.Revision, Index: -1})
		}
		return
	case d.spec.MaxSurge > 0:
		if ok, _ := active[0].available(d.spec.MinReady, d.now); !ok {
			return
		}
		fallthrough
	default:
		for _, p := range outdated {
			d.remove(p)
		}
		if d.spec.MaxSurge == 0 {
			return
		}
	}
	if len(active) > d.spec.Replicas || !busy || d.spec.MaxSurge > 0 {
		d.fill(active, d.spec.Replicas, d.spec.Revision)
	}
}
