package lifecycle

// tryAgain ends the wait of volumes and containers that could not be made because an object of the
// plan was missing: it may exist now. This does not count as a restart.
func (o *Observed) tryAgain(now Now) {
	if o.VolumeFailures > 0 && o.Sandbox == SandboxNone {
		o.VolumeFailures, o.Retry = 1, now.Boot
	}
	for _, c := range o.Containers {
		if c.State == RunStarting {
			c.TryAgain = true // its start may have read the object just before
		}
		if c.State == RunNotCreated && c.NotCreated.Reason == ReasonCreateConfigError {
			c.Ended = now.Boot - createRetry
		}
	}
}
