// Package glance puts a pod into a line, as `podrun ps` shows it, with kubectl's columns and
// strings. It has no Kubernetes types: the quick front, which must not initialise them, and the
// whole one make the same line by the same code.
package glance

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/pod"
)

// Head is above the lines.
func Head() []string { return []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"} }

// Line is one pod.
type Line struct {
	Name     string
	Ready    string // 1/2
	Status   string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts string // 3 (5m ago)
	Age      string // 12m
}

// Of is the line of a pod that was created at a time, or at an unknown one if that is zero.
// Of the plan it asks for what pod.Summarize does.
func Of(name string, created time.Time, plan *pod.Plan, st *pod.Status, now time.Time) Line {
	s := pod.Summarize(plan, st)
	restarts := strconv.Itoa(s.Restarts)
	if s.Restarts > 0 && !s.Restarted.IsZero() {
		restarts += " (" + Age(s.Restarted, now) + " ago)"
	}
	if created.IsZero() {
		created = st.StartTime
	}
	return Line{
		Name:     name,
		Ready:    fmt.Sprintf("%d/%d", s.Ready, s.Total),
		Status:   s.Status,
		Restarts: restarts,
		Age:      Age(created, now),
	}
}

// Cells are the line under Head.
func (l *Line) Cells() []string { return []string{l.Name, l.Ready, l.Status, l.Restarts, l.Age} }

// Age says how long ago a time was. A clock that was set back makes nothing younger than
// new.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}
