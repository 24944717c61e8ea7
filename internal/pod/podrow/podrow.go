// Package podrow formats a pod as a row of `podrun ps`, with kubectl's columns and strings. It has
// no Kubernetes types: the fast path, which must not initialize them, and the CLI share this code.
package podrow

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/internal/pod"
)

// Header returns the titles of the columns.
func Header() []string { return []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"} }

// Row is the row of one pod.
type Row struct {
	Name     string
	Ready    string // 1/2
	Status   string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts string // 3 (5m ago)
	Age      string // 12m
}

// New returns the row of a pod created at a time; the zero time is unknown. It reads the same fields
// of the plan as pod.Summarize.
func New(name string, created time.Time, plan *pod.Plan, st *pod.Status, now time.Time) Row {
	s := pod.Summarize(plan, st)
	restarts := strconv.Itoa(s.Restarts)
	if s.Restarts > 0 && !s.Restarted.IsZero() {
		restarts += " (" + Age(s.Restarted, now) + " ago)"
	}
	if created.IsZero() {
		created = st.StartTime
	}
	return Row{
		Name:     name,
		Ready:    fmt.Sprintf("%d/%d", s.Ready, s.Total),
		Status:   s.Status,
		Restarts: restarts,
		Age:      Age(created, now),
	}
}

// Cells returns the row in the order of Header.
func (l *Row) Cells() []string { return []string{l.Name, l.Ready, l.Status, l.Restarts, l.Age} }

// Age returns how long ago a time was, at least 0 even if the clock was set back.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}
