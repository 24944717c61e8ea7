package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/manifest/workloads"
)

// fix says which images a pod is made of, where a name does not decide that: while an
// update tries newer ones, these; after it was undone, and a registry would be asked each
// time, those that the pod had before. An update that a power cut has ended counts for
// nothing until the new images have proved themselves, and for all of them then.
func (l *launch) fix(p *upPod) error {
	if p.fixed != nil {
		return nil
	}
	u, err := l.dirs.Update(p.place)
	if err != nil || u == nil {
		return err
	}
	trying := l.dirs.UpdateRunning(p.place, u)
	p.fixed = map[string]string{}
	for _, i := range manifest.Images(p.object.Pod) {
		for _, up := range u.Images {
			switch {
			case up.Ref != i.Reference:
			case trying, u.State == store.UpdateTagging:
				p.fixed[up.Ref] = up.New
			case u.State == store.UpdateUntagging:
				p.fixed[up.Ref] = up.Old
			case u.State == store.UpdateUndone && i.PullPolicy == image.Always:
				p.fixed[up.Ref] = up.Old
				fmt.Fprintln(l.front.err, report.Escape(fmt.Sprintf("podrun: pod %s keeps the image %s that it was rolled back to; podrun update %s takes the newest", p.place.Name, up.Ref, p.place.Name)))
			}
		}
	}
	return nil
}

// restored is a pod's manifest without what podrun has stamped on it and added to it.
func restored(text []byte) (*manifest.Object, error) {
	text, err := build.RemoveEphemeralContainers(text)
	if err != nil {
		return nil, err
	}
	pod, err := manifest.Unmarshal(text)
	if err != nil {
		return nil, err
	}
	if by := workloads.ControllerOf(pod); by != nil {
		return nil, report.New(report.Failure, "change the template, as with an annotation of today: its pods are made anew, of the newest images", "%s %s has made it", strings.ToLower(string(by.Owner.Kind)), by.Owner.Name)
	}
	podutil.ClearSystemFields(pod)
	if text, err = manifest.Marshal(pod); err != nil {
		return nil, err
	}
	docs, err := load([]source{{name: "the manifest that is kept", data: text}})
	if err != nil {
		return nil, err
	}
	if len(docs.pods) != 1 {
		return nil, errors.New("there is no pod in it")
	}
	return &docs.pods[0], nil
}
