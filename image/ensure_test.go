package image

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

func TestEnsure(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	ctx := context.Background()
	s := newStore(t)
	asked := func() bool {
		_, ok := fk.asked.LoadAndDelete("/v2/x/manifests/latest")
		return ok
	}

	_, err := s.Ensure(ctx, repo, Never, api.PullOptions{})
	if api.Reason(err) != api.ErrImageNeverPull || !strings.Contains(report.Hint(err), "podrun image load") || asked() {
		t.Errorf("Never without a copy: %v", err)
	}
	for _, policy := range []string{Always, IfNotPresent, Newer} {
		if _, err := s.Ensure(ctx, repo, policy, api.PullOptions{LocalOnly: true}); !errors.Is(err, api.ErrRegistryNeeded) || asked() {
			t.Errorf("%s without a copy, and no registry may be asked: %v", policy, err)
		}
	}
	if _, err := s.Ensure(ctx, repo, IfNotPresent, api.PullOptions{}); err != nil || !asked() {
		t.Errorf("IfNotPresent without a copy: %v", err)
	}
	for policy, wantAsked := range map[string]bool{Never: false, IfNotPresent: false, Always: true} {
		if _, err := s.Ensure(ctx, repo, policy, api.PullOptions{}); err != nil || asked() != wantAsked {
			t.Errorf("%s with a copy: %v, or the registry was asked or not", policy, err)
		}
	}
	fk.edit = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	if stored, err := s.Resolve(repo); err != nil {
		t.Error(err)
	} else if by, err := s.Pin(repo, stored); err != nil {
		t.Error(err)
	} else if got, err := s.Ensure(ctx, by, Always, api.PullOptions{}); err != nil || got.ID != stored.ID {
		t.Errorf("Always of %s with a copy and a broken registry: %v", by, err)
	}
	if _, err := s.Ensure(ctx, repo, Always, api.PullOptions{}); api.Reason(err) != api.ErrImagePull || !strings.Contains(report.Hint(err), "IfNotPresent") {
		t.Errorf("Always with a copy and a broken registry: %v, hint %q", err, report.Hint(err))
	}
	warned := ""
	o := api.PullOptions{Warn: func(err error) { warned = err.Error() }}
	var old pod.Image
	for _, status := range []int{http.StatusBadGateway, http.StatusUnauthorized, http.StatusNotFound} {
		fk.edit, warned = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }, ""
		var err error
		if old, err = s.Ensure(ctx, repo, Newer, o); err != nil || !strings.Contains(warned, "the copy on this machine is used") {
			t.Errorf("Newer with a copy and a registry that answers %d: %v, warned %q", status, err, warned)
		}
	}
	if _, err := newStore(t).Ensure(ctx, repo, Newer, o); api.Reason(err) != api.ErrImagePull {
		t.Errorf("Newer without a copy and with a broken registry: %v", err)
	}
	fk2, _ := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "y"})}}))
	fk.edit, fk.blobs, warned = nil, fk2.blobs, ""
	if got, err := s.Ensure(ctx, repo, Newer, o); err != nil || got.ID == old.ID || warned != "" {
		t.Errorf("Newer of a name that has moved on: %v, %s, warned %q", err, got.ID, warned)
	}
	if _, err := s.Ensure(ctx, "localhost:1/y", IfNotPresent, api.PullOptions{}); api.Reason(err) != api.ErrImagePull || !strings.Contains(report.Hint(err), "podrun image load") {
		t.Errorf("no registry: %v", err)
	}
	ensureUnset(t, s, fk, repo)
	if _, err := s.Ensure(ctx, "No Name", Always, api.PullOptions{}); api.Reason(err) != api.InvalidImageName {
		t.Errorf("bad name: %v", err)
	}
	if _, err := s.Ensure(ctx, repo, "Sometimes", api.PullOptions{}); err == nil {
		t.Error("a policy that is none was accepted")
	}
	img, err := s.Resolve(repo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(ctx, img.ID, Always, api.PullOptions{}); err != nil {
		t.Errorf("by id: %v", err)
	}
	if _, err := s.Pull(ctx, img.ID, api.PullOptions{}); api.Reason(err) != api.InvalidImageName {
		t.Errorf("pull by id: %v", err)
	}
}

// ensureUnset checks the behaviour without a policy. s has repo of the registry fk.
func ensureUnset(t *testing.T, s *testStore, fk *fake, repo string) {
	ctx, warned, asked := context.Background(), "", false
	o := api.PullOptions{Warn: func(err error) { warned = err.Error() }, BeforePull: func() { asked = true }}
	try := func(s *testStore, ref string) (pod.Image, error) {
		warned, asked = "", false
		return s.Ensure(ctx, ref, Unset, o)
	}
	if _, err := try(s, repo); err != nil || !asked || warned != "" {
		t.Errorf("latest with a copy: %v, asked %v, warned %q", err, asked, warned)
	}
	img, err := s.Resolve(repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost/mine", "localhost/mine:1", "example.invalid/mine"} {
		if err := s.Tag(repo, name); err != nil {
			t.Fatal(err)
		}
		if got, err := try(s, name); err != nil || got.ID != img.ID || asked {
			t.Errorf("%s of this machine: %v, asked %v", name, err, asked)
		}
	}
	if _, err := try(s, "localhost/nobody"); api.Reason(err) != api.ErrImageNeverPull || api.IsTransient(err) || asked || !strings.Contains(report.Hint(err), "podrun image import ROOTFS.tar localhost/nobody") {
		t.Errorf("a local name without an image: %v, hint %q", err, report.Hint(err))
	}
	if _, err := try(s, strings.Replace(repo, ":latest", "", 1)+":other"); api.Reason(err) != api.ErrImagePull || !asked {
		t.Errorf("another tag that is not there: %v", err)
	}
	fk.edit = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true }
	if _, err := try(s, repo); api.Reason(err) != api.ErrImagePull {
		t.Errorf("latest with a copy and a registry that refuses: %v", err)
	}
	fk.edit = nil
	fk.close()
	if got, err := try(s, repo); err != nil || got.ID != img.ID || !strings.Contains(warned, "the copy on this machine is used") {
		t.Errorf("latest with a copy and no registry: %v, warned %q", err, warned)
	}
	if _, err := s.Ensure(ctx, repo, Always, o); api.Reason(err) != api.ErrImagePull {
		t.Errorf("Always with a copy and no registry: %v", err)
	}
	if _, err := try(newStore(t), repo); api.Reason(err) != api.ErrImagePull || !api.IsTransient(err) {
		t.Errorf("latest without a copy and without a registry: %v", err)
	}
}

func TestParseName(t *testing.T) {
	d := digest.FromString("x").String()
	for in, want := range map[string]string{
		"busybox":                     "docker.io/library/busybox:latest",
		"busybox:1.36":                "docker.io/library/busybox:1.36",
		"user/x":                      "docker.io/user/x:latest",
		"localhost/x:1":               "localhost/x:1",
		"localhost:5000/x":            "localhost:5000/x:latest",
		"example.org/a/b/c:v1":        "example.org/a/b/c:v1",
		"busybox@" + d:                "docker.io/library/busybox@" + d,
		"busybox:1.36@" + d:           "docker.io/library/busybox@" + d,
		"index.docker.io/library/x:1": "docker.io/library/x:1",
	} {
		got, err := records.ParseName(in)
		if err != nil || got.String() != want {
			t.Errorf("parseName(%s) = %v, %v; want %s", in, got, err, want)
		}
	}
	for ref, want := range map[string]bool{
		"localhost/x": true, "localhost:5000/x": true, "127.0.0.1:5000/x": true, "127.9.9.9/x": true,
		"x": false, "10.0.0.1/x": false, "localhost.example.com/x": false,
	} {
		name, err := records.ParseName(ref)
		if err != nil || records.IsLoopback(name) != want {
			t.Errorf("loopback(%s) is %v, %v; want %v", ref, !want, err, want)
		}
	}
}
