package cli

import (
	"time"

	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/podutil"
)

// record puts a pod on record: its manifest, as of the time it was created, its plan, and
// what has become of its images.
func (l *launch) record(p *upPod, created time.Time) error {
	if err := l.put(p, created); err != nil {
		return err
	}
	return p.place.AddEvents(l.fetched(p)...)
}

// put is record without the events.
func (l *launch) put(p *upPod, created time.Time) error {
	stamped := p.object.Pod.DeepCopy()
	podutil.FillSystemFields(stamped, p.plan.UID, created)
	text, err := manifest.Marshal(stamped)
	if err != nil {
		return err
	}
	return l.create(p, text)
}
