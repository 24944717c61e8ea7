package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

// withClaims returns a host with claims: used by a pod that is down, free, never used, and a
// directory whose claim is gone.
func withClaims(t *testing.T) *clitest.Host {
	t.Helper()
	h := clitest.NewHost(t)
	for _, name := range []string{"used", "free", "new"} {
		o := &pod.Object{Kind: pod.KindClaim, Namespace: "default", Name: name, UID: "u", Revision: 1, Claim: &pod.Claim{AccessModes: []string{"ReadWriteOnce"}, Request: 1 << 30}}
		if err := h.Dirs.PutObject(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"used", "free", "lost"} {
		dir, err := h.Dirs.ClaimDir("default", name)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "data"), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plan := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web", Volumes: []pod.Volume{{Name: "v", Kind: pod.ClaimVolume, Claim: "used"}}}
	if err := h.Dirs.Pod("default", "web").Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestVolumeLs(t *testing.T) {
	h := withClaims(t)
	code, out, _ := said(h, "volume", "ls")
	want := `NAMESPACE   NAME   CLAIM   USED BY   PATH
default     free   yes     <none>    DIR/free
default     lost   no      <none>    DIR/lost
default     new    yes     <none>    <none>
default     used   yes     web       DIR/used
`
	dir, _ := h.Dirs.ClaimDir("default", "free")
	if got := strings.ReplaceAll(out, filepath.Dir(dir), "DIR"); code != 0 || got != want {
		t.Errorf("exit %d\n%s", code, got)
	}
	code, out, errs := said(h, "volume", "inspect", "used", "none")
	if code == 0 || !strings.Contains(out, `"usedBy": [`) || !strings.Contains(out, `"requestBytes": 1073741824`) || !strings.Contains(errs, "volume \"none\" not found in namespace \"default\"") {
		t.Errorf("exit %d %s %s", code, out, errs)
	}
}

func TestVolumeRm(t *testing.T) {
	h := withClaims(t)
	code, out, errs := said(h, "volume", "rm", "used", "free", "lost", "new", "../x")
	if code == 0 || out != "persistentvolumeclaim/free deleted\npersistentvolumeclaim/lost deleted\npersistentvolumeclaim/new deleted\n" ||
		!strings.Contains(errs, "cannot remove volume used: pod web uses it") || !strings.Contains(errs, "podrun down web") || !strings.Contains(errs, "volume \"../x\" not found") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	left, err := h.Dirs.Volumes()
	objects, oerr := h.Dirs.Objects(pod.KindClaim, "")
	if err != nil || oerr != nil || len(left) != 1 || len(objects) != 1 {
		t.Errorf("left: %v, %v; %v, %v", left, objects, err, oerr)
	}
}

func TestDownVolumes(t *testing.T) {
	h := withClaims(t)
	other := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "db", Volumes: []pod.Volume{
		{Name: "v", Kind: pod.ClaimVolume, Claim: "used"}, {Name: "w", Kind: pod.ClaimVolume, Claim: "free"}}}
	if err := h.Dirs.Pod("default", "db").Create(other, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	code, out, errs := said(h, "down", "db", "--volumes")
	if code != 0 || out != "pod/db deleted\npersistentvolumeclaim/free deleted\n" || !strings.Contains(errs, "persistentvolumeclaim/used is kept: pod web uses it") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	if code, out, _ := said(h, "down", "web"); code != 0 || out != "pod/web deleted\n" {
		t.Errorf("exit %d\n%s", code, out)
	}
	if left, err := h.Dirs.Volumes(); err != nil || len(left) != 2 {
		t.Errorf("down without --volumes: %v, %v", left, err)
	}
}

func TestDeleteClaimWithItsDirectory(t *testing.T) {
	h := withClaims(t)
	if code, _, errs := said(h, "delete", "pvc", "used"); code == 0 || !strings.Contains(errs, "pod web uses it") {
		t.Errorf("exit %d %s", code, errs)
	}
	if code, out, errs := said(h, "delete", "pvc", "free"); code != 0 || out != "persistentvolumeclaim/free deleted\n" {
		t.Errorf("exit %d %s %s", code, out, errs)
	}
	dir, _ := h.Dirs.ClaimDir("default", "free")
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// said is the exit code and the outputs of a command.
func said(h *clitest.Host, args ...string) (code int, out, errs string) {
	r := h.Run(args...)
	return r.Code, r.Out, r.Err
}
