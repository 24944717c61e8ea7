package runner

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// changed looks at an object that is not what it was. Environments are left as they are:
// the next start of a container sees it.
func (e *engine) changed(what wire.ChangedRequest) {
	e.mu.Lock()
	s := e.sandbox
	e.mu.Unlock()
	if what.Kind == pod.KindService && s != nil && s.slot != 0 {
		if err := s.lead(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	e.refresh()
	e.emit(lifecycle.Event{Kind: lifecycle.ObjectChanged})
}
