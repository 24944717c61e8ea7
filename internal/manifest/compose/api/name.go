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

// IsLabel reports whether a name is a DNS label.
func IsLabel(name string) bool {
	return len(name) <= MaxLabel && regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(name)
}

// Label makes a DNS label of any name. A name that is one stays as it is.
func Label(name string) string {
	if IsLabel(name) {
		return name
	}
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	if len(name) > MaxLabel {
		name = name[:MaxLabel]
	}
	return strings.Trim(name, "-")
}
