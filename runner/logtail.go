package runner

import (
	"strings"

	"github.com/podrun/podrun/internal/crilog"
)

// The end of a log that stands in for a termination message: kubelet
// MaxContainerTerminationMessageLogLength and …LogLines.
const (
	maxLogTail      = 2048
	maxLogTailLines = 80
)

// logTail is the text of the last lines of an instance's log, without what cannot be
// read.
func logTail(dir string, attempt int) string {
	var end logEnd
	if err := crilog.Read(dir, attempt, crilog.Selection{Tail: maxLogTailLines}, &end); err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(end), "")
}

// logEnd is a crilog.Sink that keeps the end of what it gets.
type logEnd []byte

func (l *logEnd) Entry(e crilog.Entry) error {
	b := append(*l, e.Text...)
	if !e.Partial {
		b = append(b, '\n')
	}
	*l = append((*l)[:0], b[max(0, len(b)-maxLogTail):]...)
	return nil
}

func (l *logEnd) Flush() error { return nil }
