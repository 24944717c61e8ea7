package pod

import (
	"slices"
	"testing"
)

// A pod requires the Secrets of its volumes and variables, once each, unless they are optional.
func TestRequiredSecrets(t *testing.T) {
	key := func(kind ObjectKind, name string, optional bool) EnvVar {
		return EnvVar{Name: "V", From: &EnvRef{Key: &KeyRef{Kind: kind, Name: name, Optional: optional}}}
	}
	p := Plan{
		Volumes: []Volume{{Sources: []FileSource{{Kind: FromSecret, Name: "files"}, {Kind: FromSecret, Name: "maybe", Optional: true}, {Kind: FromConfigMap, Name: "config"}}}},
		InitContainers: []Container{{
			EnvFrom: []EnvFrom{{Kind: KindSecret, Name: "all"}, {Kind: KindSecret, Name: "maybe", Optional: true}, {Kind: KindConfigMap, Name: "config"}},
		}},
		Containers: []Container{{Vars: []EnvVar{
			{Name: "V", Value: "text"}, key(KindSecret, "key", false), key(KindSecret, "files", false), key(KindSecret, "maybe", true), key(KindConfigMap, "config", false),
		}}},
	}
	if got, want := p.RequiredSecrets(), []string{"files", "all", "key"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
