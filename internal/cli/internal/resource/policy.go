package resource

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// The label with the policy of a Namespace, and the level that permits everything (k8s.io/pod-security-admission).
const (
	enforceLabel    = "pod-security.kubernetes.io/enforce"
	levelPrivileged = "privileged"
)

// policyInForce reports whether --policy or the namespace, stored or in one of the sources, restricts the pods of a
// compose file.
func policyInForce(env *cmdutil.Env, sources []Source) (bool, error) {
	restricts := func(level string) bool { return level != "" && level != levelPrivileged }
	if restricts(env.Policy) {
		return true, nil
	}
	namespace := cmp.Or(env.Namespace, podclient.DefaultNamespace)
	for _, s := range sources {
		found, err := manifest.Decode(s.Name, s.Data)
		if err != nil {
			continue // Load reports it
		}
		for _, o := range found {
			if o.Value != nil && o.Kind == string(pod.KindNamespace) && o.Name() == namespace && restricts(o.Value.GetLabels()[enforceLabel]) {
				return true, nil
			}
		}
	}
	dirs, err := env.Dirs()
	if err != nil {
		return false, err
	}
	o, err := dirs.Object(pod.KindNamespace, "", namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return restricts(o.Labels[enforceLabel]), nil
}
