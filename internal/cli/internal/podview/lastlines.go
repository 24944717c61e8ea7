package podview

import (
	"bytes"
	"fmt"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// ContextLines is how many lines of a container's output are printed with its failure, or when a command joins
// a running pod.
const ContextLines = 10

// WithLastLines adds the last output of a container to an error.
func WithLastLines(p store.Pod, container string, err error) error {
	all, lerr := crilog.Attempts(p.LogDir(container))
	if lerr != nil || len(all) == 0 {
		return err
	}
	var text bytes.Buffer
	sink := &textSink{out: &text}
	if crilog.Read(p.LogDir(container), all[len(all)-1], crilog.Selection{Tail: ContextLines}, sink) != nil || text.Len() == 0 {
		return err
	}
	return report.New(report.ClassOf(err), report.Hint(err), "%w\nits last lines:\n%s", err, text.Bytes())
}

// textSink is a Sink that collects text.
type textSink struct{ out *bytes.Buffer }

// Entry adds a line, or a part of one.
func (s *textSink) Entry(e crilog.Entry) error {
	s.out.Write(e.Text)
	if !e.Partial {
		s.out.WriteByte('\n')
	}
	return nil
}

// Flush does nothing.
func (s *textSink) Flush() error { return nil }

// ExitText returns how a container ended.
func ExitText(t *pod.Terminated) string {
	switch t.Reason {
	case "StartError", "ContainerCannotRun":
		return "cannot be started"
	case "", "Error", "Completed":
		return fmt.Sprintf("exited with code %d", t.ExitCode)
	}
	return fmt.Sprintf("ended with %s (exit code %d)", t.Reason, t.ExitCode)
}

// FailedContainer returns the container whose end made the pod fail, or nil.
func FailedContainer(st *pod.Status) *pod.ContainerStatus {
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.ExitCode != 0 {
				return &list[i]
			}
		}
	}
	return nil
}
