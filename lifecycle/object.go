package lifecycle

// tryAgain ends the wait of what could not be made from what the plan refers to, volumes
// and containers: it may be there now. As before, that is no restart.
func (o *Observed) tryAgain(at Now) {
	if o.Held > 0 && o.Sandbox == SandboxNone {
		o.Held, o.Retry = 1, at.Boot
	}
	for _, c := range o.Containers {
		if c.State == RunStarting {
			c.Again = true // it may have looked just before
		}
		if c.State == RunUnmade && c.Unmade.Reason == ReasonCreateConfigError {
			c.Ended = at.Boot - makeAgain
		}
	}
}
