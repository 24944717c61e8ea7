package podup_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// TestEditDuringAnother has an edit that ends while another one is in progress: the other one fails.
func TestEditDuringAnother(t *testing.T) {
	base := t.TempDir()
	env := &cmdutil.Env{Getenv: func(string) string { return base }}
	p := store.Dirs{Data: base + "/data", Runtime: base + "/run"}.Pod("default", "web")
	loaded, err := manifest.Load("web.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: example}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := manifest.Marshal(loaded[0].Pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Create(&pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "web"}, text); err != nil {
		t.Fatal(err)
	}
	label := func(key string, during func()) error {
		_, err := podup.Edit(t.Context(), env, p, cmdutil.DryRunNone, func(o *corev1.Pod) error {
			during()
			o.Labels = map[string]string{key: "x"}
			return nil
		})
		return err
	}
	err = label("first", func() {
		if err := label("second", func() {}); err != nil {
			t.Error(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "pod web was changed meanwhile by another podrun command") {
		t.Errorf("the first edit: %v", err)
	}
	if text, err = p.Manifest(); err != nil || !strings.Contains(string(text), "second") {
		t.Errorf("%s %v", text, err)
	}
}
