package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestSetRecord: a record and its manifests are written, listed, pruned and removed; a name that could leave the directory is
// refused.
func TestSetRecord(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	if s, err := d.Set("site"); s != nil || err != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := d.WriteSetManifests("site", id, []byte("text "+id)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := d.Sets(); len(list) > 0 || err != nil {
		t.Errorf("a set without a record is listed: %v, %v", list, err)
	}
	s := &Set{State: SetSettled, Current: &SetVersion{ID: "3", Images: []string{"sha256:a"}}, Former: &SetVersion{ID: "2", Images: []string{"sha256:b"}}}
	if err := d.WriteSet("site", s); err != nil {
		t.Fatal(err)
	}
	if err := d.PruneSetManifests("site", s); err != nil {
		t.Fatal(err)
	}
	read, err := d.Set("site")
	if err != nil || read.Current.ID != "3" || !slices.Equal(read.Images(), []string{"sha256:a", "sha256:b"}) {
		t.Errorf("%+v, %v", read, err)
	}
	if text, err := d.SetManifests("site", "2"); string(text) != "text 2" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := d.SetManifests("site", "1"); err == nil {
		t.Error("manifests of a version that is not recorded are kept")
	}
	if err := d.RemoveSet("site"); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Sets(); len(list) > 0 || err != nil {
		t.Errorf("after the removal: %v, %v", list, err)
	}
	if _, err := d.Set("../x"); err == nil {
		t.Error("the name ../x is accepted")
	}
}

// TestSetLock: a set is being changed as long as a process holds its lock.
func TestSetLock(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	if d.SetChanging("site") {
		t.Error("it is being changed, and no process has locked it")
	}
	lock, err := d.LockSet("site")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if free, err := lock.TryExclusive(); !free || err != nil {
		t.Fatal(free, err)
	}
	if !d.SetChanging("site") {
		t.Error("it is not being changed, and a process has locked it")
	}
}

// TestSetReject: a version is rejected once, the newest rejections and changes are kept.
func TestSetReject(t *testing.T) {
	s := &Set{}
	for i := range maxSetHistory + 5 {
		s.Reject(&SetVersion{Digest: fmt.Sprint(i)}, nil, "first", time.Now())
		s.AddHistory(SetChange{Digest: fmt.Sprint(i)})
	}
	s.Reject(&SetVersion{Digest: "20"}, nil, "again", time.Now())
	if len(s.Rejected) != maxSetHistory || len(s.History) != maxSetHistory || s.History[0].Digest != "5" {
		t.Errorf("%d rejected, %d changes from %s", len(s.Rejected), len(s.History), s.History[0].Digest)
	}
	if r := s.RejectOf("20", ""); r == nil || r.Reason != "again" {
		t.Errorf("%+v", r)
	}
	if s.RejectOf("20", "other") != nil || s.RejectOf("0", "") != nil {
		t.Error("a version is rejected that is not, or no longer, recorded")
	}
}

// TestSetRejectImages: of the images of a pod only those are rejected that have changed.
func TestSetRejectImages(t *testing.T) {
	s := &Set{}
	former := &SetVersion{Pins: map[string]string{"a:1": "sha256:1", "b:1": "sha256:2"}}
	s.Reject(&SetVersion{Pins: map[string]string{"a:1": "sha256:3", "b:1": "sha256:2"}, Digests: map[string]string{"a:1": "sha256:d"}}, former, "it failed", time.Now())
	for _, tt := range []struct {
		digest, ref string
		want        bool
	}{{"sha256:3", "a:1", true}, {"sha256:d", "a:1", true}, {"sha256:2", "b:1", false}, {"sha256:3", "b:1", false}} {
		if got := s.RejectOf(tt.digest, tt.ref) != nil; got != tt.want {
			t.Errorf("%s as %s is rejected: %v, want %v", tt.digest, tt.ref, got, tt.want)
		}
	}
	s.Reject(&SetVersion{Pins: map[string]string{"a:1": "sha256:4", "b:1": "sha256:2"}}, former, "it failed", time.Now())
	if s.RejectOf("sha256:4", "a:1") == nil || s.RejectOf("sha256:3", "a:1") != nil || s.RejectOf("sha256:d", "a:1") != nil {
		t.Errorf("the last image of a name is rejected, and no other: %+v", s.Rejected)
	}
}

// TestUpdateOf: the updates of a pod are found by the pod, also if its unit has them; they are no sets of the user.
func TestUpdateOf(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	web, db := d.Pod("default", "web"), d.Pod("default", "db")
	if _, s, err := d.UpdateOf(web); s != nil || err != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, name := range []string{PodSet(web), UnitSet("podrun@db.service")} {
		s := &Set{State: SetSettled, Current: &SetVersion{ID: name, Members: []SetMember{{Namespace: "default", Name: "db"}}}}
		if err := d.WriteSet(name, s); err != nil {
			t.Fatal(err)
		}
	}
	for p, want := range map[Pod]string{web: "pod/default/web", db: "unit/podrun@db.service"} {
		if name, s, err := d.UpdateOf(p); name != want || s == nil || err != nil {
			t.Errorf("%s: %q, %+v, %v", p.Name, name, s, err)
		}
	}
	if list, err := d.UpdateSets(); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := d.Sets(); len(list) != 0 || err != nil {
		t.Errorf("sets: %v, %v", list, err)
	}
	if err := d.RemoveUpdate(db); err != nil {
		t.Fatal(err)
	}
	if _, s, err := d.UpdateOf(db); s != nil || err != nil {
		t.Errorf("after the removal: %+v, %v", s, err)
	}
}
