package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// condition sets a condition; its time changes only with its status.
func (d *decider) condition(kind string, holds bool, reason, message string) {
	status := "False"
	if holds {
		status = "True"
	}
	d.setCondition(pod.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

func (d *decider) setCondition(c pod.Condition) {
	c.LastTransition = d.now
	list := d.State.Conditions
	i := slices.IndexFunc(list, func(have pod.Condition) bool { return have.Type == c.Type })
	if i < 0 {
		d.State.Conditions = append(list, c)
		return
	}
	if list[i].Status == c.Status {
		c.LastTransition = list[i].LastTransition
	}
	list[i] = c
}

func (d *decider) dropCondition(kind string) {
	d.State.Conditions = slices.DeleteFunc(d.State.Conditions, func(c pod.Condition) bool { return c.Type == kind })
}

// Condition returns a condition of the state.
func (s *State) Condition(kind string) (pod.Condition, bool) {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c, true
		}
	}
	return pod.Condition{}, false
}

// conditions sets the conditions of a Deployment (syncRolloutStatus in
// pkg/controller/deployment/progress.go).
func (d *decider) conditions() {
	if d.Counts.Available >= d.spec.Replicas-d.spec.MaxUnavailable {
		d.condition("Available", true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		d.condition("Available", false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	d.progress()
	if d.State.CreateError != "" {
		d.condition("ReplicaFailure", true, "FailedCreate", d.State.CreateError)
	} else {
		d.dropCondition("ReplicaFailure")
	}
}

// progress sets the condition Progressing of a roll-out. Without a deadline there is none.
func (d *decider) progress() {
	s, last := &d.State, d.State.Seen
	c := d.Counts
	better := c.Updated > last.Updated || c.Ready > last.Ready || c.Available > last.Available ||
		c.Replicas-c.Updated < last.Replicas-last.Updated
	s.Seen = c
	if d.spec.ProgressDeadline == 0 {
		d.dropCondition("Progressing")
		return
	}
	name := d.spec.Name + "-" + d.spec.Revision
	was, _ := s.Condition("Progressing")
	switch {
	case d.spec.Paused:
		d.setCondition(pod.Condition{Type: "Progressing", Status: "Unknown", Reason: "DeploymentPaused", Message: "Deployment is paused"})
		s.Progress = d.now // a paused roll-out does not time out
		return
	case d.complete():
		d.condition("Progressing", true, "NewReplicaSetAvailable", fmt.Sprintf("The pods of %q are available.", name))
		return
	case was.Reason == "NewReplicaSetAvailable" && c.Replicas == c.Updated:
		return // it was rolled out, and has lost a pod since
	case better:
		s.Progress = d.now
	}
	deadline := s.Progress.Add(d.spec.ProgressDeadline)
	if d.now.Before(deadline) {
		d.wakeAt(deadline)
		d.condition("Progressing", true, "ReplicaSetUpdated", fmt.Sprintf("The pods of %q are progressing.", name))
		return
	}
	d.condition("Progressing", false, "ProgressDeadlineExceeded", fmt.Sprintf("The pods of %q have made no progress for %v.", name, d.spec.ProgressDeadline.Round(time.Second)))
}

// Stuck reports whether a roll-out has made no progress within its deadline.
func (s *State) Stuck() bool {
	c, _ := s.Condition("Progressing")
	return c.Reason == "ProgressDeadlineExceeded"
}
