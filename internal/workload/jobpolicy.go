package workload

import (
	"fmt"
	"slices"
	"time"
)

// FailureRule is one rule of a Job's podFailurePolicy: it matches a failed pod if one of its
// containers has such an exit code, or the pod has one of the conditions.
type FailureRule struct {
	Action     FailureAction
	Container  string // "": any
	Codes      []int  // nil: the conditions decide
	NotIn      bool   // every code but these and 0
	Conditions []FailureCondition
}

// FailureCondition is a condition of a pod.
type FailureCondition struct{ Type, Status string }

// FailureAction is the action for a failed pod.
type FailureAction string

const (
	FailJob   FailureAction = "FailJob"   // the Job fails
	FailIndex FailureAction = "FailIndex" // its index fails
	Ignore    FailureAction = "Ignore"    // it does not count, and is replaced
	Count     FailureAction = "Count"     // it counts towards the limits, as without a rule
)

// End is the end of a container of a pod.
type End struct {
	Container string
	Code      int
}

// SuccessRule is one rule of a Job's successPolicy: Count of Indexes have succeeded.
type SuccessRule struct {
	Indexes []int // nil: any
	Count   int   // -1: all of Indexes
}

// IndexState is the saved state of an index that has not completed.
type IndexState struct {
	Failures int       `json:"failures,omitempty"` // counted ones
	Ignored  int       `json:"ignored,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
}

// failure returns the action for a failed pod, and the message if the action ends the Job
// (matchPodFailurePolicy in pkg/controller/job/pod_failure_policy.go).
func (s *JobSpec) failure(p *Pod, namespace string) (FailureAction, string) {
	for i, r := range s.FailureRules {
		reason := ""
		if r.Codes != nil {
			j := slices.IndexFunc(p.Ends, func(e End) bool {
				return e.Code != 0 && (r.Container == "" || r.Container == e.Container) && slices.Contains(r.Codes, e.Code) != r.NotIn
			})
			if j < 0 {
				continue
			}
			reason = fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d matching %s rule at index %d", p.Ends[j].Container, namespace, p.Name, p.Ends[j].Code, r.Action, i)
		} else {
			j := slices.IndexFunc(p.Conditions, func(c FailureCondition) bool { return slices.Contains(r.Conditions, c) })
			if j < 0 {
				continue
			}
			reason = fmt.Sprintf("Pod %s/%s has condition %s matching %s rule at index %d", namespace, p.Name, p.Conditions[j].Type, r.Action, i)
		}
		return r.Action, reason
	}
	return Count, ""
}

// tallyFailure counts a failed pod.
func (d *decider) tallyFailure(p *Pod) {
	j, s := &d.State.Job, &d.spec.Job
	moment := d.now
	if !p.Ended.IsZero() {
		moment = p.Ended
	}
	j.InARow++
	j.ExitCode = p.ExitCode
	d.State.FailedAt = moment
	action, reason := s.failure(p, d.spec.Namespace)
	if action != Ignore {
		j.Failed++
	}
	if action == FailJob && j.Reason == "" {
		j.Reason, j.Message = "PodFailurePolicy", reason
	}
	if s.perIndex() && p.Index >= 0 && p.Index < s.Completions {
		d.tallyIndex(p.Index, action, moment)
	}
}

// perIndex reports whether failures are counted for each index.
func (s *JobSpec) perIndex() bool { return s.Indexed && s.BackoffPerIndex >= 0 }

// tallyIndex counts a failure of an index (isIndexFailed in
// pkg/controller/job/indexed_job_utils.go).
func (d *decider) tallyIndex(index int, action FailureAction, moment time.Time) {
	j := &d.State.Job
	was := j.Tries[index]
	over := action == FailIndex || action != Ignore && was.Failures >= d.spec.Job.BackoffPerIndex
	if over && !slices.Contains(j.FailedIndexes, index) && !slices.Contains(j.Indexes, index) {
		j.FailedIndexes = append(j.FailedIndexes, index)
		slices.Sort(j.FailedIndexes)
	}
	was.FailedAt = moment
	if action == Ignore {
		was.Ignored++
	} else {
		was.Failures++
	}
	if j.Tries == nil {
		j.Tries = map[int]IndexState{}
	}
	j.Tries[index] = was
}

// checkIndexes checks whether too many indexes have failed, or none is left.
func (d *decider) checkIndexes() {
	j, s := &d.State.Job, &d.spec.Job
	switch failed := len(j.FailedIndexes); {
	case j.Reason != "" || !s.perIndex():
	case s.MaxFailedIndexes >= 0 && failed > s.MaxFailedIndexes:
		j.Reason, j.Message = "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
	case failed > 0 && failed+len(j.Indexes) >= s.Completions:
		j.Reason, j.Message = "FailedIndexes", "Job has failed indexes"
	}
}

// checkSuccess checks whether the Job has succeeded before all of its indexes have
// (matchSuccessPolicy in pkg/controller/job/success_policy.go).
func (d *decider) checkSuccess() {
	j, s := &d.State.Job, &d.spec.Job
	if j.Reason != "" || len(j.Indexes) == 0 {
		return
	}
	for i, r := range s.SuccessRules {
		have, want := len(j.Indexes), r.Count
		if r.Indexes != nil {
			have = 0
			for _, index := range r.Indexes {
				if slices.Contains(j.Indexes, index) {
					have++
				}
			}
		}
		if want < 0 || r.Indexes != nil && want > len(r.Indexes) {
			want = len(r.Indexes)
		}
		if (r.Indexes == nil || len(r.Indexes) > 0) && have >= want {
			d.condition("SuccessCriteriaMet", true, "SuccessPolicy", fmt.Sprintf("Matched rules at index %d", i))
			return
		}
	}
}

// succeeded reports whether the Job's success was decided before, and by which rule.
func (s *State) succeeded() (reason, message string, ok bool) {
	c, ok := s.Condition("SuccessCriteriaMet")
	return c.Reason, c.Message, ok && c.Status == "True"
}

// waits reports whether a failed index must wait before its next try, and schedules that try.
func (d *decider) waits(index int) bool {
	if !d.spec.Job.perIndex() {
		return false
	}
	t := d.State.Job.Tries[index]
	until := after(t.FailedAt, jobDelay(t.Failures+t.Ignored))
	if !d.now.Before(until) {
		return false
	}
	d.wakeAt(until)
	return true
}
