package resource

import (
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// ClaimsInFiles returns the claims that files define, and those that their pods use. A compose file defines its own:
// others are external to it.
func ClaimsInFiles(env *cmdutil.Env, files []string) (claims []kindnames.ObjectRef, err error) {
	named, err := NamedInFiles(env, files)
	add := func(namespace, name string) {
		if c := (kindnames.ObjectRef{Kind: pod.KindClaim, Namespace: namespace, Name: name}); !slices.Contains(claims, c) {
			claims = append(claims, c)
		}
	}
	for _, o := range named {
		switch {
		case o.Kind == string(pod.KindClaim):
			add(o.Value.GetNamespace(), o.Name())
		case o.Pod != nil && o.Pod.Annotations[podutil.AnnotationComposeProject] == "":
			for _, v := range o.Pod.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					add(o.Pod.Namespace, v.PersistentVolumeClaim.ClaimName)
				}
			}
		}
	}
	return claims, err
}
