package podutil

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// AnnotationSync has what podrun up --watch copies into the pod's containers: a list of api.SyncRule in YAML.
const AnnotationSync = "podrun.dev/sync"

// ParseSync parses the annotation.
func ParseSync(text string) (rules []api.SyncRule, err error) {
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("it is no list of rules: %s", strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	for i := range rules {
		if err := complete(&rules[i]); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return rules, nil
}

// complete sets the default of a rule and checks it.
func complete(r *api.SyncRule) error {
	if r.Action == "" {
		r.Action = api.SyncFiles
	}
	switch {
	case !slices.Contains(api.SyncActions(), r.Action):
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
