package cli

import (
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
)

// oneSort refuses a unit of both pods and workloads: it is the one's process or the
// other's.
func oneSort(docs documents) error {
	if len(docs.pods) > 0 && len(docs.workloads) > 0 {
		return report.New(report.Usage, "put them into files of their own, with a unit each", "a unit runs either Pods or what makes them: %s has a Pod, %s a %s",
			where(&docs.pods[0]), where(&docs.workloads[0]), docs.workloads[0].Kind)
	}
	return nil
}

// samples are pods that workloads would make.
func samples(w []manifest.Object) []manifest.Object {
	var list []manifest.Object
	for i := range w {
		list = append(list, *workloads.SamplePod(&w[i]))
	}
	return list
}

// ofWorkloads tells systemd of workloads what it must know. A Job that has failed stays
// so; what goes on for ever is started again.
func (u *unit) ofWorkloads(workloads []manifest.Object) {
	if len(workloads) == 0 {
		return
	}
	var names []string
	u.service.RestartOnFailure = false
	for i := range workloads {
		o := &workloads[i]
		names = append(names, o.Kind+" "+o.Name())
		if o.Kind != string(pod.KindJob) {
			u.service.RestartOnFailure = true
		}
	}
	u.service.Description = strings.Join(names, ", ")
}
