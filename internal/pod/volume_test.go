package pod

import "testing"

func TestVolumesRefer(t *testing.T) {
	p := Plan{Volumes: []Volume{
		{Name: "a", Kind: ClaimVolume, Claim: "data"},
		{Name: "b", Kind: Files, Sources: []FileSource{{Kind: FromPod}, {Kind: FromConfigMap, Name: "web"}, {Kind: FromSecret, Name: "key"}}},
	}}
	for _, test := range []struct {
		kind ObjectKind
		name string
		want bool
	}{
		{KindClaim, "data", true}, {KindConfigMap, "web", true}, {KindSecret, "key", true},
		{KindClaim, "web", false}, {KindConfigMap, "key", false}, {KindSecret, "web", false}, {KindConfigMap, "", false}, {KindClaim, "", false},
	} {
		if got := p.Refers(test.kind, test.name); got != test.want {
			t.Errorf("%s %q: %t", test.kind, test.name, got)
		}
	}
}

// TestContainersRefer: containers of every kind refer to the objects of their variables.
func TestContainersRefer(t *testing.T) {
	from := func(name string) []Container {
		return []Container{{Name: name, EnvFrom: []EnvFrom{{Kind: KindConfigMap, Name: name}}, Vars: []EnvVar{{Name: "V", From: &EnvRef{Key: &KeyRef{Kind: KindSecret, Name: name}}}}}}
	}
	p := Plan{InitContainers: from("init"), Containers: from("app"), Ephemeral: from("debugger")}
	for _, name := range []string{"init", "app", "debugger"} {
		if !p.Refers(KindConfigMap, name) || !p.Refers(KindSecret, name) {
			t.Errorf("the variables of container %s do not count", name)
		}
	}
	if p.Refers(KindConfigMap, "other") || p.Refers(KindSecret, "other") {
		t.Error("an object that no variable names is referred to")
	}
}
