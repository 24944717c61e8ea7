package podutil

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// AnnotationSync has what podrun up --watch copies into the pod's containers: a list of SyncRule in YAML.
const AnnotationSync = "podrun.dev/sync"

// The actions of a SyncRule, as compose's develop.watch has them.
const (
	SyncFiles      = "sync"         // copy what has changed
	SyncRestart    = "restart"      // restart the container
	SyncAndRestart = "sync+restart" // copy what has changed, and restart the container
	SyncRebuild    = "rebuild"      // build the image, and replace the pod
)

// SyncRule says what is done when a file of the host changes (compose specification: develop.md).
type SyncRule struct {
	Path        string   `json:"path"`                   // of the host: a file or a directory; relative to the manifest's directory
	Action      string   `json:"action,omitempty"`       // "": sync
	Target      string   `json:"target,omitempty"`       // an absolute path in the container, for the actions that copy
	Container   string   `json:"container,omitempty"`    // "": the first
	Ignore      []string `json:"ignore,omitempty"`       // patterns of .dockerignore, relative to Path
	Include     []string `json:"include,omitempty"`      // only files with one of these patterns
	InitialSync bool     `json:"initial_sync,omitempty"` // also copy everything at the beginning
}

// Copies reports whether the action copies files.
func (r *SyncRule) Copies() bool { return r.Action == SyncFiles || r.Action == SyncAndRestart }

// ParseSync parses the annotation.
func ParseSync(text string) (rules []SyncRule, err error) {
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("it is no list of rules: %s", strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	for i := range rules {
		if err := rules[i].complete(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return rules, nil
}

func (r *SyncRule) complete() error {
	if r.Action == "" {
		r.Action = SyncFiles
	}
	switch {
	case !slices.Contains([]string{SyncFiles, SyncRestart, SyncAndRestart, SyncRebuild}, r.Action):
		return fmt.Errorf("action %q is none of sync, restart, sync+restart and rebuild", r.Action)
	case r.Path == "":
		return fmt.Errorf("path is missing")
	case r.Copies() && !path.IsAbs(r.Target):
		return fmt.Errorf("target %q is not an absolute path", r.Target)
	case !r.Copies() && r.Target != "":
		return fmt.Errorf("target has no meaning with action %s", r.Action)
	}
	return nil
}
