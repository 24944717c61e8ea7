package node

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/nodetest"
)

const (
	classPath  = "/apis/storage.k8s.io/v1/storageclasses/local"
	claimPath  = "/api/v1/namespaces/default/persistentvolumeclaims/data"
	volumePath = "/api/v1/persistentvolumes/pvc-" + uid1
	directory  = "pvc-" + uid1 + "_default_data"
)

// newClass returns a StorageClass of the node's provisioner.
func newClass() *storageClass {
	return &storageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: provisionerName, ReclaimPolicy: corev1.PersistentVolumeReclaimDelete}
}

// newClaim returns a claim that waits for a volume on the node attic.
func newClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default", UID: uid1, Annotations: map[string]string{annotationSelectedNode: "attic"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("local"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// made returns what the engine was told about volumes.
func (e *fakeEngine) made() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.volumes)
}

// setVolumeErr sets the result of further calls about volumes.
func (e *fakeEngine) setVolumeErr(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.volumeErr = err
}

// volume returns the volume of the claim; nil if there is none.
func (b *bed) volume(t *testing.T) *corev1.PersistentVolume {
	t.Helper()
	v := &corev1.PersistentVolume{}
	err := b.Client(t).Get(t.Context(), volumePath, v)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestProvision: a claim that the scheduler has placed on the node gets a volume there, which only its directory
// precedes. Another agent, started when the claim is not bound yet, makes no second one.
func TestProvision(t *testing.T) {
	b := newBed(t)
	b.Put(t, classPath, newClass())
	b.Put(t, claimPath, newClaim())
	end := b.run(t)
	waitFor(t, "the volume", func() bool { return b.volume(t) != nil })
	v := b.volume(t)
	want := corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/" + directory}},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data", UID: uid1, ResourceVersion: v.Spec.ClaimRef.ResourceVersion},
		StorageClassName:       "local", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, VolumeMode: new(corev1.PersistentVolumeFilesystem),
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: "In", Values: []string{"attic"}}}}}}},
	}
	got, _ := json.Marshal(v.Spec)
	if wanted, _ := json.Marshal(want); string(got) != string(wanted) {
		t.Errorf("the volume is\n%s, not\n%s", got, wanted)
	}
	if by := v.Annotations["pv.kubernetes.io/provisioned-by"]; by != "podrun.dev/local" {
		t.Errorf("it is provisioned by %q", by)
	}
	end()
	tried := make(chan string, 1)
	b.SetHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/persistentvolumes") {
			text, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(text)))
			tried <- string(text)
		}
		return false
	})
	b.run(t)
	if again := <-tried; !strings.Contains(again, directory) {
		t.Errorf("another volume: %s", again)
	}
	if made := b.engine.made(); !slices.Equal(made, []string{"make " + directory, "make " + directory}) {
		t.Errorf("the agent did %q", made)
	}
	if events := b.Events("data"); len(events) > 0 {
		t.Errorf("events: %q", events)
	}
}

// TestProvisionNothing: the node makes no volume for a claim that is bound, ends, is placed on another node or nowhere,
// or is of another provisioner.
func TestProvisionNothing(t *testing.T) {
	for name, change := range map[string]func(c *corev1.PersistentVolumeClaim){
		"bound":        func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "disk" },
		"deleted":      func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) },
		"another node": func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotationSelectedNode] = "cellar" },
		"no node":      func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil },
		"another class": func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[corev1.BetaStorageClassAnnotation] = "other"
		},
		"a wrong name": func(c *corev1.PersistentVolumeClaim) { c.Name = "../data" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.Put(t, classPath, newClass())
			other := newClass()
			other.Name, other.Provisioner = "other", "example.com/other"
			b.Put(t, "/apis/storage.k8s.io/v1/storageclasses/other", other)
			c := newClaim()
			change(c)
			b.Put(t, claimPath, c)
			last := newClaim() // is handled after the other
			last.Name, last.UID = "last", uid2
			b.Put(t, "/api/v1/namespaces/default/persistentvolumeclaims/last", last)
			b.run(t)
			waitFor(t, "a volume", func() bool { return len(b.engine.made()) > 0 })
			if made := b.engine.made(); !slices.Equal(made, []string{"make pvc-" + uid2 + "_default_last"}) {
				t.Errorf("the agent did %q", made)
			}
		})
	}
}

// TestProvisioningFailed: a claim that cannot have a volume gets an event with the reason. What is not possible now is
// tried again.
func TestProvisioningFailed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *corev1.PersistentVolumeClaim, class *storageClass)
		event  string
	}{
		"block": {
			func(c *corev1.PersistentVolumeClaim, _ *storageClass) {
				c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			},
			"spec.volumeMode Block is not possible: volumes of podrun.dev/local are directories of a node",
		},
		"selector": {
			func(c *corev1.PersistentVolumeClaim, _ *storageClass) { c.Spec.Selector = &metav1.LabelSelector{} },
			"spec.selector is not possible",
		},
		"snapshot": {
			func(c *corev1.PersistentVolumeClaim, _ *storageClass) {
				c.Spec.DataSource = &corev1.TypedLocalObjectReference{Name: "x"}
			},
			"spec.dataSource is not possible",
		},
		"parameters": {
			func(_ *corev1.PersistentVolumeClaim, class *storageClass) {
				class.Parameters = map[string]string{"a": "b"}
			},
			"parameters of StorageClass local is not possible",
		},
		"no space": {nil, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			c, class := newClaim(), newClass()
			if test.change != nil {
				test.change(c, class)
			} else {
				b.engine.setVolumeErr(errors.New("no space left"))
			}
			b.Put(t, classPath, class)
			b.Put(t, claimPath, c)
			b.run(t)
			waitFor(t, "an event", func() bool {
				return slices.ContainsFunc(b.Events("data"), func(e string) bool { return strings.HasPrefix(e, "ProvisioningFailed: "+test.event) })
			})
			if b.volume(t) != nil {
				t.Error("there is a volume")
			}
			b.engine.setVolumeErr(nil)
			b.Put(t, classPath, newClass()) // ends the back-off
			b.Put(t, claimPath, newClaim())
			waitFor(t, "the volume", func() bool { return b.volume(t) != nil })
		})
	}
}

// TestRemoveVolume: a released volume of the node is removed, its directory first, if its reclaim policy says so. The
// provisioner removes no other volume and no directory that it has not made.
func TestRemoveVolume(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(v *corev1.PersistentVolume)
		removed bool
	}{
		"released": {func(*corev1.PersistentVolume) {}, true},
		"bound":    {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"retained": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"of another node": {func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "cellar"
		}, false},
		"of nobody":            {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		"of another directory": {func(v *corev1.PersistentVolume) { v.Spec.Local.Path = "/home" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			p := newProvisioner(&Agent{Node: &Registration{Name: "attic"}})
			v := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid1, UID: uid2, Annotations: map[string]string{annotationProvisionedBy: provisionerName}},
				Spec: corev1.PersistentVolumeSpec{
					PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/" + directory}},
					ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data", UID: uid1}, NodeAffinity: p.affinity(),
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				},
				Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
			}
			last := v.DeepCopy() // is handled after the other
			last.Name, last.UID, last.Spec.ClaimRef.Name = "last", "00000000-0000-0000-0000-000000000003", "last"
			last.Spec.Local.Path = "/volumes/pvc-" + uid1 + "_default_last"
			test.change(v)
			b.Put(t, volumePath, v)
			b.Put(t, "/api/v1/persistentvolumes/last", last)
			b.run(t)
			var removed []string
			waitFor(t, "the end of the last volume", func() bool {
				removed = b.engine.made()
				return slices.Contains(removed, "remove pvc-"+uid1+"_default_last")
			})
			if has := slices.Contains(removed, "remove "+directory); has != test.removed || (b.volume(t) == nil) != test.removed {
				t.Errorf("the agent did %q; the volume is %v", removed, b.volume(t))
			}
		})
	}
}

// TestRemoveVolumeAgain: a volume whose directory cannot be removed stays, and is removed later.
func TestRemoveVolumeAgain(t *testing.T) {
	b := newBed(t)
	b.Put(t, classPath, newClass())
	b.Put(t, claimPath, newClaim())
	b.run(t)
	waitFor(t, "the volume", func() bool { return b.volume(t) != nil })
	b.Remove(claimPath)
	v := b.volume(t)
	v.Status.Phase = corev1.VolumeReleased
	b.engine.setVolumeErr(errors.New("permission denied"))
	b.Put(t, volumePath, v)
	waitFor(t, "an event", func() bool { return slices.Contains(b.Events(v.Name), "VolumeFailedDelete: permission denied") })
	if b.volume(t) == nil {
		t.Error("the volume is gone")
	}
	b.engine.setVolumeErr(nil)
	waitFor(t, "the end of the volume", func() bool { return b.volume(t) == nil })
}

// TestProvisioningForbidden: the agent prints once that it may not provision, and reads nothing else then.
func TestProvisioningForbidden(t *testing.T) {
	b := newBed(t)
	refused := make(chan struct{}, 100)
	b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "storageclasses") && !strings.Contains(r.URL.Path, "persistentvolume") {
			return false
		}
		if strings.Contains(r.URL.Path, "persistentvolume") {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		nodetest.RespondError(w, apierrors.NewForbidden(corev1.Resource("storageclasses"), "", errors.New("no rule")))
		refused <- struct{}{}
		return true
	})
	b.run(t)
	<-refused
	<-refused
	waitFor(t, "a message", func() bool { return strings.Contains(b.out.String(), "get no volumes") })
	if n := strings.Count(b.out.String(), "podrun.dev/local"); n != 1 {
		t.Errorf("printed %d times: %s", n, b.out)
	}
}

// TestLocalStorage: the page for users has the manifest in local-storage.yaml.
func TestLocalStorage(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/join-a-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("controlplane/local-storage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, objects, _ := strings.Cut(string(manifest), "\n") // without the comment
	if !strings.Contains(string(page), objects) {
		t.Errorf("docs/how-to/join-a-cluster.md does not have\n%s", objects)
	}
}
