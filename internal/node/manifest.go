package node

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
)

// manifestOf returns a pod of the API server as a manifest that needs no API server: every token of its
// ServiceAccount becomes a Secret, which the node keeps up to date. Its limits follow the kubelet's rule, unless it
// chooses another.
func manifestOf(p *corev1.Pod) *corev1.Pod {
	m := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations, Generation: p.Generation},
		Spec:       *p.Spec.DeepCopy(),
	}
	if m.Annotations[podutil.AnnotationPodLimits] == "" {
		m.Annotations = maps.Clone(m.Annotations)
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, podutil.AnnotationPodLimits, string(resources.RuleKubelet))
	}
	// The API server's admission has added the account's pull secrets and the volume with its token.
	m.Spec.ServiceAccountName, m.Spec.DeprecatedServiceAccount, m.Spec.AutomountServiceAccountToken = "", "", new(false)
	for i := range m.Spec.Volumes { // the cluster has made the claims of ephemeral volumes
		if v := &m.Spec.Volumes[i]; v.Ephemeral != nil {
			v.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: ephemeralClaim(p, v)}}
		}
	}
	for _, t := range tokensOf(m) {
		*t.source = corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: t.secret(p)},
			Items:                []corev1.KeyToPath{{Key: corev1.ServiceAccountTokenKey, Path: t.Path}},
		}}
	}
	return m
}

// manifestOf returns manifestOf with the node's logs and devices.
func (a *Agent) manifestOf(p *corev1.Pod) *corev1.Pod {
	m := manifestOf(p)
	if n := a.Node.object(); n != nil {
		removeForeign(m, strings.Fields(n.Annotations[annotationDevices]))
	}
	if a.LogDir != "" {
		redirectLogs(m, a.LogDir)
	}
	return m
}

// removeForeign removes extended resources that are not devices of the node, whose kinds are own: another component has given
// them to the node, and they are only counted (kubelet: pkg/kubelet/cm/devicemanager allocates resources of device plugins).
func removeForeign(m *corev1.Pod, own []string) {
	foreign := func(name corev1.ResourceName, _ resource.Quantity) bool {
		return strings.Contains(string(name), "/") && !slices.Contains(own, string(name))
	}
	for _, containers := range [][]corev1.Container{m.Spec.InitContainers, m.Spec.Containers} {
		for i := range containers {
			maps.DeleteFunc(containers[i].Resources.Limits, foreign)
			maps.DeleteFunc(containers[i].Resources.Requests, foreign)
		}
	}
}

// redirectLogs replaces the host's /var/log by dir, and its directories of logs of containers by those in dir, read-only:
// there the node's pods have their logs with the kubelet's names.
func redirectLogs(m *corev1.Pod, dir string) {
	replaced := map[string]bool{}
	for i := range m.Spec.Volumes {
		v := &m.Spec.Volumes[i]
		if v.HostPath == nil {
			continue
		}
		switch p := path.Clean(v.HostPath.Path); p {
		case "/var/log", "/var/log/pods", "/var/log/containers":
			v.HostPath.Path, replaced[v.Name] = path.Join(dir, strings.TrimPrefix(p, "/var/log")), true
		}
	}
	mounts := func(mounts []corev1.VolumeMount) {
		for i := range mounts {
			mounts[i].ReadOnly = mounts[i].ReadOnly || replaced[mounts[i].Name]
		}
	}
	for i := range m.Spec.InitContainers {
		mounts(m.Spec.InitContainers[i].VolumeMounts)
	}
	for i := range m.Spec.Containers {
		mounts(m.Spec.Containers[i].VolumeMounts)
	}
	for i := range m.Spec.EphemeralContainers {
		mounts(m.Spec.EphemeralContainers[i].VolumeMounts)
	}
}

// token is a ServiceAccount token that a pod mounts.
type token struct {
	*corev1.ServiceAccountTokenProjection
	source *corev1.VolumeProjection
	number int
}

// secret returns the name of the Secret in which the node keeps the token.
func (t *token) secret(p *corev1.Pod) string {
	return fmt.Sprintf("podrun-token-%s-%d", p.UID, t.number)
}

// tokensOf returns the tokens that a pod mounts.
func tokensOf(p *corev1.Pod) (all []token) {
	for i := range p.Spec.Volumes {
		projected := p.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if t := projected.Sources[j].ServiceAccountToken; t != nil {
				all = append(all, token{t, &projected.Sources[j], len(all)})
			}
		}
	}
	return all
}

// Reference names a ConfigMap, a Secret or a claim.
type Reference struct{ Kind, Namespace, Name string }

const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	kindClaim     = "PersistentVolumeClaim"
)

// objectsOf returns what this host stores of the cluster for a pod and others that refer to the same: referencesOf, and
// the claims.
func objectsOf(p *corev1.Pod) map[Reference]bool {
	objects := referencesOf(p)
	for name := range claimsOf(p) {
		objects[Reference{kindClaim, p.Namespace, name}] = true
	}
	return objects
}

// referencesOf returns the ConfigMaps and Secrets to which a pod refers (kubelet: pkg/api/v1/pod,
// VisitPodSecretNames and VisitPodConfigmapNames).
func referencesOf(p *corev1.Pod) map[Reference]bool {
	r := references{p.Namespace, map[Reference]bool{}}
	for _, s := range p.Spec.ImagePullSecrets {
		r.add(kindSecret, s.Name)
	}
	for i := range p.Spec.Volumes {
		r.addVolume(&p.Spec.Volumes[i])
	}
	for i := range p.Spec.InitContainers {
		r.addEnv(p.Spec.InitContainers[i].Env, p.Spec.InitContainers[i].EnvFrom)
	}
	for i := range p.Spec.Containers {
		r.addEnv(p.Spec.Containers[i].Env, p.Spec.Containers[i].EnvFrom)
	}
	for i := range p.Spec.EphemeralContainers {
		r.addEnv(p.Spec.EphemeralContainers[i].Env, p.Spec.EphemeralContainers[i].EnvFrom)
	}
	return r.found
}

type references struct {
	namespace string
	found     map[Reference]bool
}

func (r *references) add(kind, name string) {
	if name != "" {
		r.found[Reference{kind, r.namespace, name}] = true
	}
}

func (r *references) addVolume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		r.add(kindConfigMap, v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.add(kindSecret, v.Secret.SecretName)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			r.add(kindConfigMap, s.ConfigMap.Name)
		}
		if s.Secret != nil {
			r.add(kindSecret, s.Secret.Name)
		}
	}
}

func (r *references) addEnv(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, e := range from {
		if e.ConfigMapRef != nil {
			r.add(kindConfigMap, e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			r.add(kindSecret, e.SecretRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if k := e.ValueFrom.ConfigMapKeyRef; k != nil {
			r.add(kindConfigMap, k.Name)
		}
		if k := e.ValueFrom.SecretKeyRef; k != nil {
			r.add(kindSecret, k.Name)
		}
	}
}

// accountOf returns the name of a pod's ServiceAccount.
func accountOf(p *corev1.Pod) string { return cmp.Or(p.Spec.ServiceAccountName, "default") }
