package podutil

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// AnnotationStartAfter names the pods of the same namespace that must have reached a state before podrun up
// starts this one: db=Ready,migration=Succeeded.
const AnnotationStartAfter = "podrun.dev/start-after"

// The states of AnnotationStartAfter.
const (
	AfterRunning   = string(pod.Running)   // every app container has been started, even if it has ended
	AfterReady     = "Ready"               // the condition
	AfterSucceeded = string(pod.Succeeded) // the phase
)

// StartAfter is a pod that must have reached a state.
type StartAfter struct{ Pod, State string }

// ParseStartAfter reads the value of AnnotationStartAfter. Its error continues the sentence "it …".
func ParseStartAfter(value string) (list []StartAfter, err error) {
	for one := range strings.SplitSeq(value, ",") {
		name, state, _ := strings.Cut(strings.TrimSpace(one), "=")
		if name == "" || !slices.Contains([]string{AfterRunning, AfterReady, AfterSucceeded}, state) {
			return nil, fmt.Errorf("must be a list as in db=%s,migration=%s,cache=%s", AfterReady, AfterSucceeded, AfterRunning)
		}
		list = append(list, StartAfter{name, state})
	}
	return list, nil
}
