package cli

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/report"
)

// noKind is the error for the words of `get` that name pods or objects of no kind that is
// kept, where kubectl has a meaning for them; nil if they may be names of pods.
func noKind(words []string) error {
	if len(words) != 1 {
		return nil
	}
	word := strings.ToLower(words[0])
	if kinds := strings.Split(word, ","); len(kinds) > 1 {
		return report.New(report.Usage, "podrun get "+strings.Join(kinds, "; podrun get "), "get shows one kind at a time, not %q", words[0])
	}
	hint := ""
	switch word {
	case "all":
		hint = "podrun get pods, podrun get services, podrun get deployments and so on show one kind each"
	case "event", "events", "ev":
		hint = "podrun events shows the events"
	case "endpoints", "ep", "endpointslices":
		hint = "podrun get pods -o wide shows which pods are ready, and their addresses"
	case "pv", "persistentvolume", "persistentvolumes":
		hint = "podrun get pvc shows the claims, podrun volume ls the volumes"
	case "node", "nodes", "no":
		hint = "there is one node, this machine: podrun doctor says how it is"
	default:
		return nil
	}
	return report.New(report.Usage, hint, "get does not know the kind %q", words[0])
}

// otherOption is a hint for options of kubectl, podman and docker that a command has not.
func otherOption(command, option string) string {
	listing := slices.Contains([]string{"podrun ps", "podrun get"}, command)
	switch {
	case listing && slices.Contains([]string{"a", "all"}, option):
		return command + " lists pods that have ended too; -A lists those of all namespaces"
	case listing && slices.Contains([]string{"w", "watch"}, option):
		return "podrun events -w shows what happens, podrun wait waits for it"
	case command == "podrun down" && slices.Contains([]string{"a", "all"}, option):
		return "name the pods: podrun down $(podrun ps -o name)"
	}
	return ""
}
