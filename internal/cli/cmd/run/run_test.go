package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/runpod"
)

func TestContainerName(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "busybox", "quay.io/team/my_app.v2:1": "my-app-v2", "localhost:5000/web@sha256:aa": "web", "x/___": "run",
	} {
		if got := containerName(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// TestFlagsAreOptions: each flag of the container is an option of package runpod, with a value unless it is a flag
// there.
func TestFlagsAreOptions(t *testing.T) {
	for _, f := range containerFlags() {
		name := f.Names()[0]
		if !runpod.Known(name) {
			t.Errorf("package runpod has no option %s", name)
		}
		if takes, ok := f.(interface{ TakesValue() bool }); !ok || takes.TakesValue() == runpod.Flag(name) {
			t.Errorf("%s: only one of flag and option has a value", name)
		}
	}
}

// TestSetEnv: docker's format of files, and docker's order: -e overrides the files.
func TestSetEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	text := "\uFEFF# comment\n\n  A=1\r\nB= \"x\" # y\nFROM\nUNSET\nC=a=b\nA=2"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := &cmdutil.Env{Getenv: func(name string) string { return map[string]string{"FROM": "outside"}[name] }}
	o := &options{env: env, image: "x", settings: []setting{{"env-file", file}, {"env", "C=$(A)"}, {"env", "D="}, {"env", "FROM"}}}
	p, err := o.newPod()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range p.Spec.Containers[0].Env {
		got = append(got, v.Name+"="+v.Value)
	}
	if want := []string{`B= "x" # y`, "A=2", "C=$$(A)", "D=", "FROM=outside"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
