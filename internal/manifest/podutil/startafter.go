package podutil

import (
	"fmt"
	"strings"
	"time"

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
	AfterHealthy   = "Healthy"             // as Ready; a container that ends or is unhealthy ends the wait
)

// StartAfter is a pod that must have reached a state.
type StartAfter struct {
	Pod, State string
	Grace      time.Duration // of AfterHealthy: how long an unhealthy container does not end the wait
}

// ParseStartAfter reads the value of AnnotationStartAfter. Its error continues the sentence "it …".
func ParseStartAfter(value string) (list []StartAfter, err error) {
	for word := range strings.SplitSeq(value, ",") {
		name, state, _ := strings.Cut(strings.TrimSpace(word), "=")
		state, grace, err := cutGrace(state)
		switch state {
		case AfterRunning, AfterReady, AfterSucceeded, AfterHealthy:
		default:
			name = ""
		}
		if name == "" || err != nil || grace < 0 || grace > 0 && state != AfterHealthy {
			return nil, fmt.Errorf("must be a list as in db=%s,migration=%s,cache=%s,queue=%s:30s", AfterReady, AfterSucceeded, AfterRunning, AfterHealthy)
		}
		list = append(list, StartAfter{name, state, grace})
	}
	return list, nil
}

// cutGrace splits a state and the duration after a colon, if there is one.
func cutGrace(state string) (word string, grace time.Duration, err error) {
	word, text, found := strings.Cut(state, ":")
	if found {
		grace, err = time.ParseDuration(text)
	}
	return word, grace, err
}
