package admission

import (
	"cmp"
	"errors"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// AddPullSecrets gives a pod without imagePullSecrets its ServiceAccount's: of the objects that are
// about to be stored, else of the stored ones (plugin/pkg/admission/serviceaccount of Kubernetes). An account
// that does not exist has none.
func AddPullSecrets(dirs store.Dirs, soon []manifest.Object, p *corev1.Pod) error {
	if len(p.Spec.ImagePullSecrets) > 0 {
		return nil
	}
	name := cmp.Or(p.Spec.ServiceAccountName, "default")
	account := (*pod.Object)(nil)
	for _, o := range soon {
		if s := o.Stored; s.Kind == pod.KindServiceAccount && s.Namespace == p.Namespace && s.Name == name {
			account = s
		}
	}
	if account == nil {
		var err error
		if account, err = dirs.Object(pod.KindServiceAccount, p.Namespace, name); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
	}
	for _, s := range account.ServiceAccount.PullSecrets {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	return nil
}

// AdmitManifests refuses pods that the policies of their namespaces or this command forbid, and gives the
// others the pull secrets of their ServiceAccounts. policy is a level of the Pod Security Standards, or "" for
// the namespace's; unsafeSysctls are the permitted patterns.
func AdmitManifests(env *cmdutil.Env, dirs store.Dirs, docs resource.Documents, policy string, unsafeSysctls []string) error {
	return errors.Join(CheckPodSecurity(env, dirs, docs, policy), CheckSysctls(docs, unsafeSysctls), AddAllPullSecrets(dirs, docs))
}

// AddAllPullSecrets is AddPullSecrets for the pods of manifests.
func AddAllPullSecrets(dirs store.Dirs, docs resource.Documents) error {
	var errs []error
	for i := range docs.Pods {
		errs = append(errs, AddPullSecrets(dirs, docs.Stored, docs.Pods[i].Pod))
	}
	return errors.Join(errs...)
}
