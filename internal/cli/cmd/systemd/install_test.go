package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/unit"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/systemd"
)

// TestInstallKeepsForeignUnit checks that a unit which podrun has not written is not overwritten.
func TestInstallKeepsForeignUnit(t *testing.T) {
	dirs := systemd.UnitDirs{Units: t.TempDir(), Manifests: t.TempDir()}
	u := &unitFile{name: "podrun@web.service", manifest: []byte("a")}
	u.service.Manifest = filepath.Join(dirs.Manifests, "web.yaml")
	path := filepath.Join(dirs.Units, u.name)
	if err := os.WriteFile(path, []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := u.write(dirs); err == nil || !strings.Contains(err.Error(), "is not a unit of podrun") {
		t.Errorf("%v", err)
	}
	os.Remove(path)
	if err := os.WriteFile(u.service.Manifest, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := u.write(dirs); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("%v", err)
	}
	os.Remove(u.service.Manifest)
	for i, want := range []bool{true, false} {
		changed, err := u.write(dirs)
		if err != nil || changed != want {
			t.Errorf("time %d: changed %v, %v", i+1, changed, err)
		}
	}
	u.manifest = []byte("b")
	if changed, err := u.write(dirs); err != nil || !changed {
		t.Errorf("another manifest: changed %v, %v", changed, err)
	}
}

// TestInstallKeepsUnitOfAnotherFile checks that the unit of a file that still exists is not overwritten.
func TestInstallKeepsUnitOfAnotherFile(t *testing.T) {
	dirs := systemd.UnitDirs{Units: t.TempDir(), Manifests: t.TempDir()}
	sources := t.TempDir()
	install := func(source, manifest string) (*unitFile, error) {
		path := filepath.Join(sources, source)
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		u := &unitFile{name: "podrun@app.service", manifest: []byte(manifest)}
		u.service.Source, u.service.Manifest = path, filepath.Join(dirs.Manifests, "app.yaml")
		_, err := u.write(dirs)
		return u, err
	}
	if _, err := install("100%.yaml", "a"); err != nil {
		t.Fatal(err)
	}
	if u, err := install("100%.yaml", "b"); err != nil || u.replaces != "" {
		t.Errorf("the same file: %v, replaces %q", err, u.replaces)
	}
	if _, err := install("other.yaml", "c"); err == nil || !strings.Contains(err.Error(), "podrun@app.service is the unit of "+filepath.Join(sources, "100%.yaml")) {
		t.Errorf("another file: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dirs.Manifests, "app.yaml")); err != nil || string(text) != "b" {
		t.Errorf("the manifest is %q, %v", text, err)
	}
	if err := os.Remove(filepath.Join(sources, "100%.yaml")); err != nil {
		t.Fatal(err)
	}
	if u, err := install("other.yaml", "c"); err != nil || u.replaces != filepath.Join(sources, "100%.yaml") {
		t.Errorf("after a move: %v, replaces %q", err, u.replaces)
	}
}

// TestInstallNodeOptions: the unit's command has what follows --.
func TestInstallNodeOptions(t *testing.T) {
	o := &installNodeOptions{}
	o.env = &cmdutil.Env{Getenv: func(string) string { return t.TempDir() }}
	o.words = []string{"--", "--max-pods", "20", "--"}
	if err := o.Validate(); err != nil || !slices.Equal(o.words, []string{"--max-pods", "20", "--"}) {
		t.Errorf("%q, %v", o.words, err)
	}
}

// TestInstallSdnotify: a unit is active when its pods are ready, or with --sdnotify running when they run.
func TestInstallSdnotify(t *testing.T) {
	plain := corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}
	probed := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", ReadinessProbe: &corev1.Probe{}}}}
	for _, c := range []struct {
		spec       corev1.PodSpec
		when       unit.ActiveWhen
		args, said string
	}{
		{plain, unit.ActiveReady, "", ""},
		{plain, unit.ActiveRunning, "--sdnotify running", ""},
		{probed, unit.ActiveRunning, "--sdnotify running", ""},
		{probed, unit.ActiveReady, "", "podrun: podrun@web is active when pod web is ready, and starting until then; --sdnotify running makes it active when its containers run\n"},
	} {
		var said strings.Builder
		o := &installOptions{unitOptions: unitOptions{env: &cmdutil.Env{ErrOut: &said}}, sdnotify: c.when}
		u := &unitFile{name: "podrun@web.service"}
		u.docs.Pods = []manifest.Object{{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: c.spec}}}
		o.setActiveWhen(u)
		if args := strings.Join(u.service.Args, " "); args != c.args || said.String() != c.said {
			t.Errorf("%s: options %q, output %q", c.when, args, said.String())
		}
	}
}
