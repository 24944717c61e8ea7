package node

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/nodetest"
)

// TestClaims: a pod starts with the volume to which the API server has bound its claim. Until then, and with any other
// volume, it does not start, and an event has the reason.
func TestClaims(t *testing.T) {
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default", UID: "claim"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "disk"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}
		change(c)
		return c
	}
	volume := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "volume"},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}},
				ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "claim"},
			},
		}
		change(v)
		return v
	}
	sound, bound := claim(func(*corev1.PersistentVolumeClaim) {}), volume(func(*corev1.PersistentVolume) {})
	for name, test := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		volume  *corev1.PersistentVolume
		message string
	}{
		"bound":     {claim: sound, volume: bound},
		"no claim":  {message: "failed to fetch PVC from API server"},
		"no volume": {claim: sound, message: "failed to fetch PV disk from API server"},
		"pending": {
			claim:   claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimPending, "" }),
			message: "PVC is not bound",
		},
		"deleted": {
			claim:   claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = new(metav1.Now()) }),
			message: "PVC is being deleted",
		},
		"block": {
			claim:   claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }),
			message: "it has volumeMode Block: podrun mounts file systems",
		},
		"of another claim": {
			claim: sound, volume: volume(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" }),
			message: "found PV object disk with a pv.Spec.ClaimRef.UID other that does not point to claim.UID claim",
		},
		"of no claim": {
			claim: sound, volume: volume(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }),
			message: "found PV object disk with nil pv.Spec.ClaimRef",
		},
		"nfs": {
			claim: sound,
			volume: volume(func(v *corev1.PersistentVolume) {
				v.Spec.HostPath, v.Spec.NFS = nil, &corev1.NFSVolumeSource{Server: "server", Path: "/"}
			}),
			message: "persistentvolume disk is of kind nfs: podrun mounts hostPath and local",
		},
		"csi": {
			claim: sound,
			volume: volume(func(v *corev1.PersistentVolume) {
				v.Spec.HostPath, v.Spec.CSI = nil, &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "x"}
			}),
			message: "persistentvolume disk is of kind csi: podrun mounts hostPath and local",
		},
		"local": {claim: sound, volume: volume(func(v *corev1.PersistentVolume) {
			v.Spec.HostPath, v.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/disk"}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if test.claim != nil {
				b.Put(t, "/api/v1/namespaces/default/persistentvolumeclaims/data", test.claim)
			}
			if test.volume != nil {
				b.Put(t, "/api/v1/persistentvolumes/disk", test.volume)
			}
			p := nodetest.NewPod("web", uid1)
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			b.run(t)
			b.PutPod(t, p)
			if test.message == "" {
				b.waitRunning(t, "web")
				if !slices.Equal(b.engine.claims, []string{"data on disk"}) {
					t.Errorf("stored %q", b.engine.claims)
				}
				return
			}
			waitFor(t, "an event", func() bool {
				return slices.ContainsFunc(b.Events("web"), func(e string) bool {
					return strings.HasPrefix(e, "FailedMount: error processing PVC default/data: "+test.message)
				})
			})
			if got := b.engine.calls(); got != "" || len(b.engine.claims) > 0 {
				t.Errorf("the agent did %s, and stored %q", got, b.engine.claims)
			}
		})
	}
}

// TestRefusedVolumes: a pod with a volume that podrun does not mount waits, and an event names the kind.
func TestRefusedVolumes(t *testing.T) {
	for kind, source := range map[string]corev1.VolumeSource{
		"csi":     {CSI: &corev1.CSIVolumeSource{Driver: "driver"}},
		"nfs":     {NFS: &corev1.NFSVolumeSource{Server: "server", Path: "/"}},
		"gitRepo": {GitRepo: &corev1.GitRepoVolumeSource{Repository: "repository"}},
	} {
		t.Run(kind, func(t *testing.T) {
			b := newBed(t)
			p := nodetest.NewPod("web", uid1)
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
			b.run(t)
			b.PutPod(t, p)
			waitFor(t, "an event", func() bool {
				return slices.ContainsFunc(b.Events("web"), func(e string) bool {
					return strings.HasPrefix(e, `FailedMount: MountVolume.SetUp failed for volume "data" : podrun does not mount `+kind+": ")
				})
			})
			if got := b.engine.calls(); got != "" {
				t.Errorf("the agent did %s", got)
			}
		})
	}
}

// TestOtherVolumes: the engine gets the volumes that podrun mounts.
func TestOtherVolumes(t *testing.T) {
	b := newBed(t)
	p := nodetest.NewPod("web", uid1)
	for _, source := range []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}, {DownwardAPI: &corev1.DownwardAPIVolumeSource{}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{}}, {Projected: &corev1.ProjectedVolumeSource{}},
		{Image: &corev1.ImageVolumeSource{Reference: "registry.example/files:1", PullPolicy: corev1.PullAlways}},
	} {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", len(p.Spec.Volumes)), VolumeSource: source})
	}
	b.run(t)
	b.PutPod(t, p)
	b.waitRunning(t, "web")
	l, err := b.engine.Find("default", "web")
	if err != nil || !equality.Semantic.DeepEqual(l.Pod.Spec.Volumes, p.Spec.Volumes) {
		t.Errorf("the engine has %+v, %v", l, err)
	}
}

// TestEphemeralClaims: an ephemeral volume of a pod is the claim that the cluster has made for it, and no other of that
// name.
func TestEphemeralClaims(t *testing.T) {
	p := nodetest.NewPod("web", uid1)
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	if v := manifestOf(p).Spec.Volumes[0]; v.Ephemeral != nil || v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "web-scratch" {
		t.Errorf("the manifest has %+v", v)
	}
	b := newBed(t)
	b.Put(t, "/api/v1/namespaces/default/persistentvolumeclaims/web-scratch", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "web-scratch", Namespace: "default", UID: types.UID(uid2)}})
	b.run(t)
	b.PutPod(t, p)
	waitFor(t, "an event", func() bool {
		return slices.ContainsFunc(b.Events("web"), func(e string) bool { return strings.Contains(e, "was not created for pod default/web") })
	})
}

// TestTokenRefused: the API server's authorizer may learn late that a pod is bound to the node. The token is requested
// again soon, and the first two refusals are not reported.
func TestTokenRefused(t *testing.T) {
	for name, test := range map[string]struct {
		refusals int32
		reported bool
	}{"twice": {2, false}, "three times": {3, true}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			var requests atomic.Int32
			b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/serviceaccounts/default/token") {
					return false
				}
				if requests.Add(1) <= test.refusals {
					nodetest.RespondError(w, apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "default", errors.New("no relationship found")))
					return true
				}
				nodetest.Respond(w, http.StatusCreated, nodetest.Object{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": nodetest.Object{}, "status": nodetest.Object{"token": "token", "expirationTimestamp": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}})
				return true
			})
			p := nodetest.NewPod("web", uid1)
			p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
			b.run(t)
			b.PutPod(t, p)
			b.waitRunning(t, "web")
			if n := requests.Load(); n != test.refusals+1 {
				t.Errorf("%d requests", n)
			}
			if printed := strings.Contains(b.out.String(), "request a token"); printed != test.reported {
				t.Errorf("printed: %v", b.out)
			}
			if reported := slices.ContainsFunc(b.Events("web"), func(e string) bool { return strings.HasPrefix(e, "Failed: ") }); reported && !test.reported {
				t.Errorf("events: %q", b.Events("web"))
			}
		})
	}
}

// TestRefusalPauses: a token that the API server refuses for a second is there within two.
func TestRefusalPauses(t *testing.T) {
	total := time.Duration(0)
	for _, pause := range refusalPauses[:4] {
		total += pause
	}
	if refusalPauses[0] > 100*time.Millisecond || total > 2*time.Second || !slices.IsSorted(refusalPauses) {
		t.Errorf("the pauses are %v", refusalPauses)
	}
}
