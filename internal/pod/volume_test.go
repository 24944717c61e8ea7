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
