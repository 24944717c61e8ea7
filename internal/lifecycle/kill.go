package lifecycle

import "time"

// KillReason is the reason why one run of a container is ended while the pod continues.
type KillReason string

const (
	KillStartup   KillReason = "startupProbe"
	KillLiveness  KillReason = "livenessProbe"
	KillPostStart KillReason = "postStart"
	KillReplaced  KillReason = "replaced" // the plan has another revision of it

	KillRestartAll KillReason = "restartAll" // the end of another container restarts all
	KillSandbox    KillReason = "sandbox"    // the sandbox is replaced
)

// Kill is the deliberate end of one run of a container.
type Kill struct {
	Why      KillReason    `json:"why"`
	Since    Now           `json:"since"`
	GraceEnd time.Duration `json:"graceEnd"`         // CLOCK_BOOTTIME at which the grace is used up
	AtOnce   bool          `json:"atOnce,omitempty"` // SIGKILL without a hook or a stop signal
}

// endKilledRuns ends runs while the pod continues.
func (d *decision) endKilledRuns() {
	for _, list := range d.plan.All() {
		for i := range list {
			if observed := d.seen.container(list[i].Name); observed.Kill != nil {
				d.end(&list[i], observed, true)
			}
		}
	}
}

// graceEnd returns since when a container is to end and when its grace ends. Of two reasons to end
// it the shorter grace counts.
func (d *decision) graceEnd(observed *Container) (since, end time.Duration) {
	switch {
	case d.ending == nil:
		return observed.Kill.Since.Boot, observed.Kill.GraceEnd
	case observed.Kill == nil:
		return d.ending.Since.Boot, d.ending.GraceEnd
	}
	return min(observed.Kill.Since.Boot, d.ending.Since.Boot), min(observed.Kill.GraceEnd, d.ending.GraceEnd)
}
