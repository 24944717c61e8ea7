package lifecycle

import "time"

// KillReason says why one run of a container is ended while the pod goes on.
type KillReason string

const (
	KillStartup   KillReason = "startupProbe"
	KillLiveness  KillReason = "livenessProbe"
	KillPostStart KillReason = "postStart"
	KillReplaced  KillReason = "replaced" // its revision in the plan is another now

	KillRestartAll KillReason = "restartAll" // another container's end restarts all
	KillSandbox    KillReason = "sandbox"    // the sandbox has to be made anew
)

// Kill is the end of one run of a container, by our will.
type Kill struct {
	Why      KillReason    `json:"why"`
	Since    Now           `json:"since"`
	GraceEnd time.Duration `json:"graceEnd"`         // Boot time at which the grace is used up
	AtOnce   bool          `json:"atOnce,omitempty"` // KILL, without a hook or a stop signal
}

// kills ends the runs that are to end while the pod goes on.
func (d *decision) kills() {
	for _, list := range d.plan.All() {
		for i := range list {
			if seen := d.seen.container(list[i].Name); seen.Kill != nil {
				d.bringDown(&list[i], seen, true)
			}
		}
	}
}

// graceEnd is when the grace of a container that is to end is used up, and since when
// it is to end. Of two reasons to end it the shorter grace counts.
func (d *decision) graceEnd(seen *Container) (since, end time.Duration) {
	switch {
	case d.ending == nil:
		return seen.Kill.Since.Boot, seen.Kill.GraceEnd
	case seen.Kill == nil:
		return d.ending.Since.Boot, d.ending.GraceEnd
	}
	return min(seen.Kill.Since.Boot, d.ending.Since.Boot), min(seen.Kill.GraceEnd, d.ending.GraceEnd)
}
