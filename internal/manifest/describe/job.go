package describe

import (
	"cmp"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/printers"
)

func (p *page) job(j *batchv1.Job) {
	p.nameAndNamespace(j)
	p.row(0, "Selector:", selector(j.Spec.Selector))
	p.labelsAndAnnotations(j)
	p.controlledBy(j)
	spec, status := &j.Spec, &j.Status
	rowIfSet(p, 0, "Parallelism:", spec.Parallelism, "%d")
	p.row(0, "Completions:", orUnset(spec.Completions, "%d"))
	rowIfSet(p, 0, "Completion Mode:", spec.CompletionMode, "%s")
	rowIfSet(p, 0, "Suspend:", spec.Suspend, "%t")
	rowIfSet(p, 0, "Backoff Limit:", spec.BackoffLimit, "%d")
	rowIfSet(p, 0, "TTL Seconds After Finished:", spec.TTLSecondsAfterFinished, "%d")
	if status.StartTime != nil {
		p.row(0, "Start Time:", stamp(*status.StartTime))
	}
	if status.CompletionTime != nil {
		p.row(0, "Completed At:", stamp(*status.CompletionTime))
	}
	if status.StartTime != nil && status.CompletionTime != nil {
		p.row(0, "Duration:", duration.HumanDuration(status.CompletionTime.Sub(status.StartTime.Time)))
	}
	rowIfSet(p, 0, "Active Deadline Seconds:", spec.ActiveDeadlineSeconds, "%ds")
	active := fmt.Sprintf("%d Active", status.Active)
	if status.Ready != nil {
		active += fmt.Sprintf(" (%d Ready)", *status.Ready)
	}
	p.row(0, "Pods Statuses:", fmt.Sprintf("%s / %d Succeeded / %d Failed", active, status.Succeeded, status.Failed))
	if podutil.IsIndexedJob(spec) {
		p.row(0, "Completed Indexes:", indexes(status.CompletedIndexes))
	}
	p.template(&spec.Template)
}

// maxIndexes is how many bytes of a list of indexes are printed, up to the next comma.
const maxIndexes = 50

func indexes(list string) string {
	if len(list) > maxIndexes {
		if i := strings.IndexByte(list[maxIndexes:], ','); i >= 0 {
			return list[:maxIndexes+i+1] + "..."
		}
	}
	return cmp.Or(list, none)
}

func (p *page) cronJob(c *batchv1.CronJob) {
	p.nameAndNamespace(c)
	p.labelsAndAnnotations(c)
	spec := &c.Spec
	p.row(0, "Schedule:", spec.Schedule)
	p.row(0, "Concurrency Policy:", string(spec.ConcurrencyPolicy))
	suspend := "<unset>"
	if spec.Suspend != nil {
		suspend = printers.BoolColumn(*spec.Suspend)
	}
	p.row(0, "Suspend:", suspend)
	p.row(0, "Time Zone:", orUnset(spec.TimeZone, "%s"))
	p.row(0, "Successful Job History Limit:", orUnset(spec.SuccessfulJobsHistoryLimit, "%d"))
	p.row(0, "Failed Job History Limit:", orUnset(spec.FailedJobsHistoryLimit, "%d"))
	p.row(0, "Starting Deadline Seconds:", orUnset(spec.StartingDeadlineSeconds, "%ds"))
	job := &spec.JobTemplate.Spec
	chosen := "<unset>"
	if job.Selector != nil {
		chosen = selector(job.Selector)
	}
	p.row(0, "Selector:", chosen)
	p.row(0, "Parallelism:", orUnset(job.Parallelism, "%d"))
	p.row(0, "Completions:", orUnset(job.Completions, "%d"))
	rowIfSet(p, 0, "Active Deadline Seconds:", job.ActiveDeadlineSeconds, "%ds")
	p.template(&job.Template)
	last := "<unset>"
	if c.Status.LastScheduleTime != nil {
		last = stamp(*c.Status.LastScheduleTime)
	}
	p.row(0, "Last Schedule Time:", last)
	var names []string
	for _, j := range c.Status.Active {
		names = append(names, j.Name)
	}
	p.row(0, "Active Jobs:", cmp.Or(strings.Join(names, ", "), none))
}
