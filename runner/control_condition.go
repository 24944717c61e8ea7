package runner

import (
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/wire"
)

// setCondition sets a pod condition for a client, unless podrun sets that condition itself.
func (c *control) setCondition(conn *net.UnixConn, req *wire.ConditionRequest, _ []*os.File) error {
	switch {
	case req.Type == "" || lifecycle.OwnCondition(req.Type):
		return &wire.Error{
			Message: fmt.Sprintf("the condition %q is computed by podrun: it cannot be set", req.Type), Code: 2,
			Hint: "conditions of spec.readinessGates can be set",
		}
	case !slices.Contains([]string{"True", "False", "Unknown"}, req.Status):
		return &wire.Error{Message: fmt.Sprintf("a condition must be True, False or Unknown, not %q", req.Status), Code: 2}
	}
	c.engine.emit(lifecycle.Event{Kind: lifecycle.ConditionSet, Condition: req.Type, Status: req.Status, Reason: req.Reason, Message: req.Message})
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}
