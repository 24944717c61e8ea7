package podview

import (
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NotWritten is the error for a container that has no such log (yet).
type NotWritten struct{ what string }

func (e *NotWritten) Error() string { return e.what }

// Instance returns the attempt whose log is requested.
func Instance(p store.Pod, container string, st *pod.Status, previous bool) (int, error) {
	all, err := crilog.Attempts(p.LogDir(container))
	if err != nil {
		return 0, err
	}
	c, _ := st.Container(container)
	if !previous {
		if len(all) > 0 {
			return all[len(all)-1], nil
		}
		return 0, report.New(report.Failure, "podrun logs -f waits for it", "%w",
			&NotWritten{fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, p.Name, waitingReason(c))})
	}
	// While the container waits for its next start, the instance before that start is the newest.
	if c != nil && c.State.Waiting == nil && len(all) > 0 {
		all = all[:len(all)-1]
	}
	if len(all) == 0 || c == nil || c.RestartCount == 0 && c.LastState.Terminated == nil {
		return 0, &NotWritten{fmt.Sprintf("previous terminated container %q in pod %q not found", container, p.Name)}
	}
	return all[len(all)-1], nil
}

// PrintLog prints the log of one attempt of a container.
func PrintLog(p store.Pod, container string, attempt int, sel crilog.Selection, sink crilog.Sink) error {
	err := crilog.Read(p.LogDir(container), attempt, sel, sink)
	return errors.Join(err, Finish(sink))
}

// waitingReason returns why a container has not started.
func waitingReason(c *pod.ContainerStatus) string {
	if c != nil && c.State.Waiting != nil && c.State.Waiting.Reason != "" {
		return c.State.Waiting.Reason
	}
	return "ContainerCreating"
}
