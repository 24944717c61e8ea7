package node

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/report"
)

// provisionerName is the provisioner of the StorageClasses whose volumes are directories of the nodes.
const provisionerName = "podrun.dev/local"

// Annotations of Kubernetes (component-helpers/storage/volume).
const (
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// provisioner makes PersistentVolumes for the claims whose pods the scheduler has placed on this node, and removes them
// when the claims are gone (sig-storage-lib-external-provisioner: controller/controller.go). A volume is a directory of
// this host.
type provisioner struct {
	*Agent
	claims  *queue[corev1.PersistentVolumeClaim]
	volumes *queue[corev1.PersistentVolume]
	once    sync.Once

	mu      sync.Mutex
	classes map[string]*storageClass // of this provisioner
	denied  bool                     // a refusal was printed
}

// storageClass is what the provisioner reads of a StorageClass.
type storageClass struct {
	metav1.ObjectMeta `json:"metadata"`
	Provisioner       string                               `json:"provisioner"`
	ReclaimPolicy     corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
	MountOptions      []string                             `json:"mountOptions"`
	Parameters        map[string]string                    `json:"parameters"`
}

func newProvisioner(a *Agent) *provisioner {
	p := &provisioner{Agent: a, classes: map[string]*storageClass{}}
	p.claims = newQueue(p, kindClaim, "ProvisioningFailed", p.pendingClaim, p.provision)
	p.volumes = newQueue(p, "PersistentVolume", "VolumeFailedDelete", p.releasedVolume, p.remove)
	return p
}

// start watches until ctx ends. A node may read claims and volumes only where it may read StorageClasses.
func (p *provisioner) start(ctx context.Context) {
	p.running.Go(func() {
		kubeapi.Watch(ctx, p.Client, "/apis/storage.k8s.io/v1/storageclasses", "", &classHandler{p, ctx})
	})
}

// watchVolumes watches the claims and the volumes.
func (p *provisioner) watchVolumes(ctx context.Context) {
	p.running.Go(func() { kubeapi.Watch(ctx, p.Client, "/api/v1/persistentvolumeclaims", "", p.claims) })
	p.running.Go(func() { kubeapi.Watch(ctx, p.Client, "/api/v1/persistentvolumes", "", p.volumes) })
	p.running.Go(func() { p.claims.run(ctx) })
	p.running.Go(func() { p.volumes.run(ctx) })
}

// failed prints once that the API server refuses a watch. The watch of the pods reports that the API server cannot be
// reached.
func (p *provisioner) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if apierrors.IsForbidden(err) && !p.denied {
		p.denied = true
		report.Print(p.ErrOut, report.New(report.Failure, "Volumes in docs/how-to/join-a-cluster.md has the rules that permit it", "claims of StorageClasses of %s get no volumes: %w", provisionerName, err))
	}
}

// classHandler receives the StorageClasses.
type classHandler struct {
	*provisioner
	ctx context.Context
}

// Replace implements kubeapi.Handler.
func (h *classHandler) Replace(list []*storageClass) {
	h.set(func() {
		clear(h.classes)
		for _, c := range list {
			h.put(c)
		}
	})
	h.once.Do(func() { h.watchVolumes(h.ctx) })
}

// Event implements kubeapi.Handler.
func (h *classHandler) Event(kind watch.EventType, c *storageClass) {
	h.set(func() {
		delete(h.classes, c.Name)
		if kind != watch.Deleted {
			h.put(c)
		}
	})
}

// Failed implements kubeapi.Handler.
func (h *classHandler) Failed(err error) { h.failed(err) }

func (h *classHandler) put(c *storageClass) {
	if c.Provisioner == provisionerName {
		c.ManagedFields, c.Annotations = nil, nil
		h.classes[c.Name] = c
	}
}

// set changes the classes. The claims are tried again at once.
func (h *classHandler) set(change func()) {
	h.mu.Lock()
	change()
	h.mu.Unlock()
	h.claims.reset()
}

// class returns the class of a claim if its provisioner is this one; nil otherwise.
func (p *provisioner) class(c *corev1.PersistentVolumeClaim) *storageClass {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.classes[ptr.Deref(c.Spec.StorageClassName, "")]
}

// hostname returns the value of the node's label kubernetes.io/hostname.
func (p *provisioner) hostname() string {
	return cmp.Or(p.Node.Labels[corev1.LabelHostname], p.Node.Name)
}

// affinity returns the nodeAffinity of the node's volumes.
func (p *provisioner) affinity() *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.hostname()}}},
	}}}}
}

// pendingClaim returns the parts of a claim from which its volume follows; nil unless the claim waits for a volume on
// this node.
func (p *provisioner) pendingClaim(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if o.Annotations[annotationSelectedNode] != p.Node.Name || o.Spec.VolumeName != "" || o.DeletionTimestamp != nil || checkIdentity(o) != nil {
		return nil
	}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion}, Spec: o.Spec}
	if class, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		c.Spec.StorageClassName = &class
	}
	return c
}

// releasedVolume returns the parts of a volume that its removal needs; nil unless this node has to remove it.
func (p *provisioner) releasedVolume(o *corev1.PersistentVolume) *corev1.PersistentVolume {
	s := &o.Spec
	if o.Annotations[annotationProvisionedBy] != provisionerName || o.Status.Phase != corev1.VolumeReleased || o.DeletionTimestamp != nil ||
		s.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || s.ClaimRef == nil || s.Local == nil ||
		!equality.Semantic.DeepEqual(s.NodeAffinity, p.affinity()) {
		return nil
	}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	v.Spec.Local, v.Spec.ClaimRef = s.Local, s.ClaimRef
	return v
}

// volumeName returns the name of the volume of a claim.
func volumeName(uid types.UID) string { return "pvc-" + string(uid) }

// directoryName returns the name of the directory of a claim's volume, which tells the claim. It has at most 253 bytes.
func directoryName(namespace, name string, uid types.UID) string {
	s := volumeName(uid) + "_" + namespace + "_" + name
	return s[:min(len(s), 253)]
}

// checkClaim returns why a claim cannot have a volume.
func checkClaim(c *corev1.PersistentVolumeClaim, class *storageClass) error {
	s := &c.Spec
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"spec.volumeMode Block", ptr.Deref(s.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem},
		{"spec.selector", s.Selector != nil}, {"spec.dataSource", s.DataSource != nil || s.DataSourceRef != nil},
		{"spec.volumeAttributesClassName", ptr.Deref(s.VolumeAttributesClassName, "") != ""},
		{"mountOptions of StorageClass " + class.Name, len(class.MountOptions) > 0}, {"parameters of StorageClass " + class.Name, len(class.Parameters) > 0},
	} {
		if field.set {
			return fmt.Errorf("%s is not possible: volumes of %s are directories of a node", field.name, provisionerName)
		}
	}
	return nil
}

// provision makes the volume of a claim. Both of its steps may have been done by an earlier call.
func (p *provisioner) provision(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	class := p.class(c)
	if class == nil {
		return nil
	}
	if err := checkClaim(c, class); err != nil {
		return err
	}
	dir, err := p.Engine.MakeVolume(directoryName(c.Namespace, c.Name, c.UID))
	if err != nil {
		return err
	}
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(c.UID), Annotations: map[string]string{annotationProvisionedBy: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   c.Spec.AccessModes,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: kindClaim, Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
			PersistentVolumeReclaimPolicy: cmp.Or(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			StorageClassName:              class.Name,
			VolumeMode:                    new(corev1.PersistentVolumeFilesystem),
			NodeAffinity:                  p.affinity(),
		},
	}
	err = p.request(ctx, func(ctx context.Context) error { return p.Client.Create(ctx, "/api/v1/persistentvolumes", v, nil) })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the volume of claim %s/%s: %w", c.Namespace, c.Name, err)
	}
	return nil
}

// remove removes the directory of a volume, then the volume from the API server. Before that it reads the volume: its
// reclaim policy may have changed.
func (p *provisioner) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	path, now := "/api/v1/persistentvolumes/"+url.PathEscape(v.Name), &corev1.PersistentVolume{}
	err := p.request(ctx, func(ctx context.Context) error { return p.Client.Get(ctx, path, now) })
	switch {
	case apierrors.IsNotFound(err):
		return nil // the watch reports it
	case err != nil:
		return fmt.Errorf("read volume %s: %w", v.Name, err)
	case now.UID != v.UID || p.releasedVolume(now) == nil:
		return nil
	}
	ref := now.Spec.ClaimRef
	if err := p.Engine.RemoveVolume(directoryName(ref.Namespace, ref.Name, ref.UID), now.Spec.Local.Path); err != nil {
		return err
	}
	err = p.request(ctx, func(ctx context.Context) error {
		return p.Client.Delete(ctx, path, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &v.UID}})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete volume %s from the API server: %w", v.Name, err)
	}
	return nil
}

// request makes a request to the API server within requestTime.
func (p *provisioner) request(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return do(ctx)
}
