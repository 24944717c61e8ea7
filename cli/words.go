package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/report"
)

// noKind is the error for a word of `get` that is no kind.
func noKind(word string) error {
	hint := cmp.Or(foreign(word), "podrun get --help lists the kinds")
	return report.New(report.Usage, hint, "get does not know the kind %q", word)
}

// foreign is where to find what kubectl's words stand for that are no kinds here; "" if
// they may be names of pods.
func foreign(word string) string {
	switch strings.ToLower(word) {
	case "event", "events", "ev":
		return "podrun events shows the events"
	case "endpoints", "ep", "endpointslices":
		return "podrun get pods -o wide shows which pods are ready, and their addresses"
	case "pv", "persistentvolume", "persistentvolumes":
		return "podrun get pvc shows the claims, podrun volume ls the volumes"
	case "node", "nodes", "no":
		return "there is one node, this machine: podrun doctor says how it is"
	}
	return ""
}

// otherOption is a hint for options of kubectl, podman and docker that a command has not.
func otherOption(command, option string) string {
	listing := slices.Contains([]string{"podrun ps", "podrun get"}, command)
	switch {
	case listing && slices.Contains([]string{"a", "all"}, option):
		return command + " lists pods that have ended too; -A lists those of all namespaces"
	case slices.Contains([]string{"podrun down", "podrun delete"}, command) && slices.Contains([]string{"l", "selector"}, option):
		return "name the pods: " + command + " $(podrun ps -l SELECTOR -o name)"
	case slices.Contains([]string{"podrun down", "podrun delete"}, command) && slices.Contains([]string{"a", "all"}, option):
		return "name the pods: " + command + " $(podrun ps -o name)"
	}
	return ""
}
