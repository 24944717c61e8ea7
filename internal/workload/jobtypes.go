package workload

import "time"

// JobSpec is the desired state of a Job.
type JobSpec struct {
	Parallelism    int
	Completions    int // -1: one success is enough, and no pod is made after it
	BackoffLimit   int // pods, or restarts of containers, that may fail
	Indexed        bool
	Suspend        bool
	OnFailure      bool          // containers are restarted in the pod
	ActiveDeadline time.Duration // 0: none
	TTL            time.Duration // how long the Job stays after its end; -1: until it is removed
	ReplaceFailed  bool          // a pod being stopped is replaced only after it has ended

	BackoffPerIndex  int // pods of each index that may fail; -1: all count together
	MaxFailedIndexes int // indexes that may fail; -1: any
	FailureRules     []FailureRule
	SuccessRules     []SuccessRule
}

// JobState is the saved state of a Job.
type JobState struct {
	Started   time.Time `json:"started,omitzero"`
	Completed time.Time `json:"completed,omitzero"` // when it ended, well or not
	Succeeded int       `json:"succeeded,omitempty"`
	Failed    int       `json:"failed,omitempty"`
	Indexes   []int     `json:"indexes,omitempty"` // completed, ascending
	InARow    int       `json:"inARow,omitempty"`  // failures since the last success
	ExitCode  int       `json:"exitCode,omitempty"`

	FailedIndexes []int              `json:"failedIndexes,omitempty"` // given up, ascending
	Tries         map[int]IndexState `json:"tries,omitempty"`         // of the indexes that have failed

	// Reason and Message are set for a Job that is failing while pods are left.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Ended reports whether the Job is over, and whether it has succeeded.
func (s *State) Ended() (over, succeeded bool) {
	if c, ok := s.Condition("Complete"); ok && c.Status == "True" {
		return true, true
	}
	c, ok := s.Condition("Failed")
	return ok && c.Status == "True", false
}
