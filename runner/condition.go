package runner

import (
	"fmt"
	"net"
	"slices"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
)

// setCondition sets a condition for a client, unless it is ours to set.
func (c *control) setCondition(conn *net.UnixConn, req *wire.ConditionRequest) error {
	switch {
	case req.Type == "" || lifecycle.OwnCondition(req.Type):
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{
			Message: fmt.Sprintf("the condition %q follows from the pod: it cannot be set", req.Type), Code: 2,
			Hint: "spec.readinessGates names conditions that can",
		}})
	case !slices.Contains([]string{"True", "False", "Unknown"}, req.Status):
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: fmt.Sprintf("a condition is True, False or Unknown, not %q", req.Status), Code: 2}})
	}
	c.engine.emit(lifecycle.Event{Kind: lifecycle.ConditionSet, Condition: req.Type, Status: req.Status, Reason: req.Reason, Message: req.Message})
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}
