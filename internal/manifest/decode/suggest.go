package decode

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/editdistance"
)

// oldSpellings are names that were proposed in 2016 and did not become part of the API, by the name of the
// Go type of the field. They differ too much from today's names for an edit distance.
var oldSpellings = map[[2]string]string{
	{"EnvVarSource", "field"}:             "fieldRef",
	{"EnvVarSource", "resourceField"}:     "resourceFieldRef",
	{"VolumeMount", "volumeName"}:         "name",
	{"VolumeMount", "path"}:               "mountPath",
	{"DownwardAPIVolumeFile", "field"}:    "fieldRef",
	{"ResourceRequirements", "request"}:   "requests",
	{"ResourceRequirements", "limit"}:     "limits",
	{"Container", "limits"}:               "resources",
	{"Container", "requests"}:             "resources",
	{"Container", "environment"}:          "env",
	{"Container", "entrypoint"}:           "command",
	{"Container", "volumes"}:              "volumeMounts",
	{"PodSpec", "gracePeriodSeconds"}:     "terminationGracePeriodSeconds",
	{"PodSpec", "terminationGracePeriod"}: "terminationGracePeriodSeconds",
}

// suggest returns the known field that was probably meant by an unknown one of a type, or "". Wrong case is
// the commonest mistake; otherwise at most a third of the letters may differ.
func suggest(typeName, unknown string, known []string) string {
	if name, ok := oldSpellings[[2]string{typeName, unknown}]; ok {
		return name
	}
	if len(unknown) > 64 {
		return ""
	}
	best, name := max(1, len(unknown)/3)+1, ""
	for _, k := range slices.Sorted(slices.Values(known)) {
		if strings.EqualFold(k, unknown) {
			return k
		}
		if d := editdistance.Of(strings.ToLower(unknown), strings.ToLower(k)); d < best {
			best, name = d, k
		}
	}
	return name
}
