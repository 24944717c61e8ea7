package runner

import (
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
)

// changed looks at an object that is not what it was. Environments are left as they are:
// the next start of a container sees it.
func (e *engine) changed(_ wire.ChangedRequest) {
	e.emit(lifecycle.Event{Kind: lifecycle.ObjectChanged})
}
