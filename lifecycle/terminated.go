package lifecycle

import "github.com/podrun/podrun/pod"

// startErrorCode is the exit code of a container that never ran, where the
// event has none: 128, as containerd reports it to the kubelet.
const startErrorCode = 128

// failedStart describes a run that never came to be. Its code is not 0: it
// counts as a failed run for every restart policy.
func failedStart(e Event) pod.Terminated {
	t := pod.Terminated{ExitCode: e.ExitCode, Reason: e.Reason, Message: e.Message}
	if t.ExitCode == 0 {
		t.ExitCode = startErrorCode
	}
	if t.Reason == "" {
		t.Reason = "StartError"
	}
	return t
}

// exited describes a run that ended, with the reasons that the kubelet's users
// know from containerd: Completed, Error, OOMKilled.
func exited(e Event) pod.Terminated {
	t := pod.Terminated{ExitCode: e.ExitCode, Signal: e.Signal, Reason: e.Reason, Message: e.Message}
	if t.ExitCode == 0 && t.Signal > 0 {
		t.ExitCode = 128 + t.Signal
	}
	switch {
	case t.Reason != "":
	case e.OOMKilled:
		t.Reason = reasonOOMKilled
	case t.ExitCode == 0:
		t.Reason = "Completed"
	default:
		t.Reason = "Error"
	}
	return t
}

// containerID is an id as the status shows it, with its runtime.
func containerID(id string) string {
	if id == "" {
		return ""
	}
	return "podrun://" + id
}
