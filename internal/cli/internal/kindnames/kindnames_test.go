package kindnames

import (
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestWordsAreUnique: a word names one kind, stored or not.
func TestWordsAreUnique(t *testing.T) {
	owners := map[string]string{"pod": "Pod", "pods": "Pod", "po": "Pod", "all": "all"}
	claim := func(word, kind string) {
		if other := owners[word]; other != "" {
			t.Errorf("%q names %s and %s", word, other, kind)
		}
		owners[word] = kind
	}
	for _, k := range All() {
		for _, word := range k.Words {
			claim(word, string(k.Kind))
			if kinds := Lookup(strings.ToUpper(word)); !slices.Equal(kinds, []pod.ObjectKind{k.Kind}) {
				t.Errorf("%s names %v", word, kinds)
			}
		}
	}
	for _, k := range unsupportedKinds() {
		for _, word := range strings.Fields(k.words) {
			claim(word, k.kind)
			if k.Hint == "" || UnsupportedHint(word) != k.Hint || UnsupportedError(word) == nil {
				t.Errorf("%s has no hint", word)
			}
		}
	}
	for _, kind := range pod.Workloads() {
		if Of(kind) == string(kind) || !IsWorkload(kind) {
			t.Errorf("%s has no word", kind)
		}
	}
}

func TestParseObjects(t *testing.T) {
	for text, want := range map[string]struct {
		kind  pod.ObjectKind
		names string
		ok    bool
	}{
		"":                     {"", "", false},
		"cm a b":               {pod.KindConfigMap, "a,b", true},
		"configmap/a":          {pod.KindConfigMap, "a", true},
		"svc/a svc/b":          {pod.KindService, "a,b", true},
		"Deployment/a":         {pod.KindDeployment, "a", true},
		"deployments.apps a":   {pod.KindDeployment, "a", true},
		"pvc":                  {pod.KindClaim, "", true},
		"web":                  {"", "", false},
		"pod/web":              {"", "web", false},
		"nodes":                {"", "", false},
		"networkpolicy/a/b":    {pod.KindNetworkPolicy, "a/b", true},
		"endpointslices slice": {pod.KindEndpointSlice, "slice", true},
	} {
		kind, names, ok := ParseObjects(strings.Fields(text))
		if kind != want.kind || ok != want.ok || strings.Join(names, ",") != want.names {
			t.Errorf("%q: %s %v %t", text, kind, names, ok)
		}
	}
}

func TestParsePods(t *testing.T) {
	for text, want := range map[string]struct {
		ok    bool
		names string
	}{
		"": {false, ""}, "pod a b": {true, "a,b"}, "po": {true, ""}, "pods/a pods/b": {true, "pods/a,pods/b"}, "pod/": {false, ""}, "cm a": {false, ""},
	} {
		if ok, names := ParsePods(strings.Fields(text)); ok != want.ok || strings.Join(names, ",") != want.names {
			t.Errorf("%q: %t %v", text, ok, names)
		}
	}
}

// TestUnsupported: a kind is recognized with its group and in KIND/NAME; other words may be names of pods.
func TestUnsupported(t *testing.T) {
	for word, want := range map[string]string{
		"node": "Node", "NODES/a": "Node", "ing": "Ingress", "ingresses.networking.k8s.io": "Ingress", "hpa.autoscaling": "HorizontalPodAutoscaler",
		"nodes.example.com": "", "web": "", "cm": "", "": "",
	} {
		got := ""
		if k := Unsupported(word); k != nil {
			got = k.kind
		}
		if got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if err := UnknownError("frob"); err == nil || !strings.Contains(err.Error(), `unknown kind "frob"`) {
		t.Error(err)
	}
}

func TestDisplay(t *testing.T) {
	for want, ref := range map[string]ObjectRef{
		"pod/web": {Name: "web"}, "deployment.apps/web": {Kind: pod.KindDeployment, Name: "web"}, "secret/a": {Kind: pod.KindSecret, Name: "a"},
	} {
		if got := DisplayRef(ref); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if o := (&pod.Object{Kind: ref.Kind, Name: ref.Name}); ref.Kind != "" && Display(o) != want {
			t.Errorf("%s, want %s", Display(o), want)
		}
	}
}
