package admission

import (
	"cmp"
	"errors"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// AddPullSecrets gives a pod without imagePullSecrets those of its ServiceAccount: of the objects that are
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
