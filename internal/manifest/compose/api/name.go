package api

import (
	"regexp"
	"strings"
)

// Labels of the pods and objects of a project, from the recommended set of Kubernetes.
const (
	LabelProject = "app.kubernetes.io/part-of"
	LabelService = "app.kubernetes.io/name"
)

// MaxLabel is the maximum length of a DNS label.
const MaxLabel = 63

// Label makes a DNS label of any name. A name that is one stays as it is.
func Label(name string) string {
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	if len(name) > MaxLabel {
		name = name[:MaxLabel]
	}
	return strings.Trim(name, "-")
}
