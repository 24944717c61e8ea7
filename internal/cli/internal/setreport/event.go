package setreport

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// controller is the sender of all events.
const controller = "podrun"

// event is what Flux posts (github.com/fluxcd/pkg: apis/event/v1beta1/event.go), with the set in the place of an object.
type event struct {
	InvolvedObject      object            `json:"involvedObject"`
	Severity            string            `json:"severity"` // info or error
	Timestamp           string            `json:"timestamp"`
	Message             string            `json:"message"`
	Reason              string            `json:"reason"`
	Metadata            map[string]string `json:"metadata"`
	ReportingController string            `json:"reportingController"`
	ReportingInstance   string            `json:"reportingInstance"`
}

type object struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
}

// newEvent returns the event of a set's change.
func newEvent(set string, c store.SetChange) event {
	machine, _ := os.Hostname()
	e := event{
		InvolvedObject: object{Kind: "Set", Namespace: "default", Name: set, APIVersion: "podrun.dev/v1"},
		Severity:       "info", Timestamp: c.At.UTC().Format(time.RFC3339),
		Metadata:            map[string]string{"revision": c.Revision, "version": c.Version, "digest": c.Digest, "former": c.Former},
		ReportingController: controller, ReportingInstance: machine,
	}
	maps.DeleteFunc(e.Metadata, func(_, value string) bool { return value == "" })
	version := cmp.Or(c.Version, c.Revision, c.Digest)
	switch c.Result {
	case store.SetFailed:
		e.Severity, e.Reason = "error", "Failed"
		e.Message = fmt.Sprintf("%s is not ready: %s", version, c.Reason)
		if c.Former != "" {
			e.Message += "; the set is back at " + c.Former
		}
	case store.SetRolledBack:
		e.Reason, e.Message = "RolledBack", version+" is ready; it was rolled back to by hand"
	default:
		e.Reason, e.Message = "Applied", version+" is ready"
	}
	return e
}
