package pod

// End is the end of a container's latest run, if no other run follows.
type End struct {
	Attempt  int    `json:"attempt"` // the restart count
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}
