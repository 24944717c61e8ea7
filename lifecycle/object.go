package lifecycle

// tryAgain ends the wait of containers that could not be made from what the plan refers
// to: it may be there now. As before, that is no restart.
func (o *Observed) tryAgain(at Now) {
	for _, c := range o.Containers {
		if c.State == RunUnmade && c.Unmade.Reason == ReasonCreateConfigError {
			c.Ended = at.Boot - makeAgain
		}
	}
}
