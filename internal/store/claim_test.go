package store

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

func putClaim(t *testing.T, d Dirs, name string) *pod.Object {
	t.Helper()
	o := &pod.Object{Kind: pod.KindClaim, Namespace: "default", Name: name, UID: "uid of " + name, Claim: &pod.Claim{Request: 1, Class: new("manual")}}
	if err := d.PutObject(o); err != nil {
		t.Fatal(err)
	}
	return o
}

func putVolume(t *testing.T, d Dirs, name string) {
	t.Helper()
	o := &pod.Object{Kind: pod.KindVolume, Name: name, UID: name, PersistentVolume: &pod.PersistentVolume{Capacity: 1, Class: "manual", Source: "hostPath", Path: "/"}}
	if err := d.PutObject(o); err != nil {
		t.Fatal(err)
	}
}

// TestBindClaimsConcurrently: commands and supervisors that bind at once give each claim one volume, and each
// volume to one claim.
func TestBindClaimsConcurrently(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	var claims []*pod.Object
	for i := range 8 {
		claims = append(claims, putClaim(t, d, fmt.Sprint("c", i)))
		putVolume(t, d, fmt.Sprint("v", i/2)) // half of the claims get one
	}
	var all sync.WaitGroup
	for _, c := range claims {
		all.Go(func() {
			lock, err := d.LockObjects()
			if err != nil {
				t.Error(err)
				return
			}
			defer lock.Close()
			if _, _, err := d.BindClaims([]*pod.Object{c}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	volumes, err := d.Objects(pod.KindVolume, "")
	if err != nil {
		t.Fatal(err)
	}
	bound := map[string]int{}
	for _, v := range volumes {
		for _, c := range claims {
			if v.PersistentVolume.IsBoundTo(c) {
				bound[c.Name]++
			}
		}
	}
	for name, n := range bound {
		if n > 1 {
			t.Errorf("claim %s has %d volumes", name, n)
		}
	}
	if len(bound) != 4 {
		t.Errorf("%d claims are bound, want 4", len(bound))
	}
}

// TestNoVolumeInAnEnforcedNamespace: a claim that a StatefulSet gets later, or that a volume is reserved for, reaches
// no directory of the host if its namespace enforces a Pod Security Standard.
func TestNoVolumeInAnEnforcedNamespace(t *testing.T) {
	for level, bound := range map[string]bool{"": true, "privileged": true, "baseline": false, "restricted": false} {
		d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
		namespace := &pod.Object{Kind: pod.KindNamespace, Name: "default", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}
		if err := d.PutObject(namespace); err != nil {
			t.Fatal(err)
		}
		putVolume(t, d, "v")
		putClaim(t, d, "c")
		o, err := d.Pod("default", "web").BindClaim("c")
		if err != nil || (o.Claim.Volume != nil) != bound {
			t.Errorf("level %q: %+v, %v", level, o, err)
		}
	}
}

// TestBindClaimOfAPod: the supervisor binds a claim that a killed command has stored and not bound. A claim with a
// directory keeps it.
func TestBindClaimOfAPod(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	p := d.Pod("default", "web")
	putVolume(t, d, "v")
	putVolume(t, d, "w")
	putClaim(t, d, "unbound")
	for range 2 {
		o, err := p.BindClaim("unbound")
		if err != nil || o.Claim.Volume == nil || o.Claim.Volume.Name != "v" {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if v, err := p.FindBoundVolume("unbound"); err != nil || v == nil || v.Path != "/" {
		t.Errorf("%+v, %v", v, err)
	}
	putClaim(t, d, "used")
	if err := os.MkdirAll(p.ClaimDir("used"), 0o700); err != nil {
		t.Fatal(err)
	}
	if o, err := p.BindClaim("used"); err != nil || o.Claim.Volume != nil || !o.Claim.Bound {
		t.Errorf("%+v, %v", o, err)
	}
	waits := putClaim(t, d, "waits")
	waits.Claim.VolumeName = "missing"
	if err := d.PutObject(waits); err != nil {
		t.Fatal(err)
	}
	if _, err := p.BindClaim("waits"); err == nil || err.Error() != `persistentvolume "missing" not found` {
		t.Errorf("%v", err)
	}

	file, err := d.objectFile(pod.KindVolume, "", "v")
	if err == nil {
		err = os.WriteFile(file, []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, err := p.BindClaim("used"); err != nil || !o.Claim.Bound {
		t.Errorf("a damaged volume: %+v, %v", o, err)
	}
	if _, err := p.BindClaim("waits"); err == nil || !strings.Contains(err.Error(), "read PersistentVolume") {
		t.Errorf("a claim that may be bound to a damaged volume: %v", err)
	}
}
