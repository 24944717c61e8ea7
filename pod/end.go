package pod

// End is how the latest run of a container has ended that is not to be run again.
type End struct {
	Attempt  int    `json:"attempt"` // the restart count
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}
