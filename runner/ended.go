package runner

import (
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/lifecycle"
)

// ended is how an instance's process ended.
type ended struct {
	Code, Signal int
	OOM          bool
	OOMLimit     lifecycle.OOMLimit
	Message      string
	At           lifecycle.Now
}

// endOf says how a process has ended.
func endOf(x stage.Exit, err error) *ended {
	e := &ended{At: readClocks()}
	ago := e.At.Boot - x.At
	e.At.Boot, e.At.Wall = x.At, e.At.Wall.Add(-ago)
	switch {
	case err != nil:
		e.Code, e.Message = 255, err.Error()
	case x.Status.Signaled():
		e.Code, e.Signal = 128+int(x.Status.Signal()), int(x.Status.Signal())
	default:
		e.Code = x.Status.ExitStatus()
	}
	return e
}
