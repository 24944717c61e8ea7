package resource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// TestPodWords: beside KIND/NAME a word alone names a pod.
func TestPodWords(t *testing.T) {
	for text, want := range map[string]string{"a b": "[a b]", "a deploy/b": "[pod/a deploy/b]", "pod a": "[pod a]", "": "[]"} {
		if got := fmt.Sprint(PodWords(strings.Fields(text))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if _, err := ParseKinds([]string{"frob", "a"}); err == nil {
		t.Error("a word that is no kind is accepted")
	}
}

func TestParseQueries(t *testing.T) {
	for text, want := range map[string]string{
		"pods":              "[{[] }]",
		"web db":            "[{[web db] }]",
		"cm":                "[{ConfigMap [] }]",
		"cm,svc":            "[{ConfigMap [] } {Service [] }]",
		"cm a b":            "[{ConfigMap [a b] }]",
		"cm/a cm/b pod/web": "[{ConfigMap [a b] } {[web] }]",
		"nodes":             "podrun does not store Node objects",
		"node/a":            "podrun does not store Node objects",
		"frob/a":            `unknown kind "frob"`,
		"cm,frob":           `unknown kind "frob"`,
		"cm/a b":            `use KIND/NAME for all arguments or for none: "b" is not`,
		"cm,svc a":          "names require a single kind: use KIND/NAME for objects of several kinds",
		"all/a":             `unknown kind "all"`,
	} {
		queries, err := parseQueries(strings.Fields(text))
		got := strings.ReplaceAll(fmt.Sprint(queries), "{ [", "{[")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if all, err := parseQueries([]string{"all"}); err != nil || len(all) != 2+len(pod.Workloads()) {
		t.Errorf("all: %v, %v", all, err)
	}
}

func TestSplitChanges(t *testing.T) {
	for text, want := range map[string]string{
		"pod/web a=b c-":   "pod/web | a=b c-",
		"deployment web":   "deployment web | ",
		"web -":            "web - | ",
		"web =b":           "web =b | ",
		"a=b web":          "all resources must be specified before changes: web",
		"web a=b=c d.e/f-": "web | a=b=c d.e/f-",
	} {
		targets, changes, err := SplitChanges("label", strings.Fields(text))
		got := strings.Join(targets, " ") + " | " + strings.Join(changes, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestResolvePod: a name that is no pod's never becomes a path.
func TestResolvePod(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	for word, want := range map[string]string{
		"web": "", "pod/web": "", "po/web": "",
		"../web":         `pod "../web" not found`,
		"pod/..":         `pod ".." not found`,
		"deployment/web": `"deployment/web" does not name a pod`,
		"Web":            `pod "Web" not found`,
	} {
		p, err := ResolvePod(dirs, "default", word)
		if want == "" && (err != nil || p.Name != "web") || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %s, %v", word, p.Name, err)
		}
	}
	if _, err := ResolvePod(dirs, "../x", "web"); err == nil {
		t.Error("a namespace with a path")
	}
	if _, err := ExistingPod(dirs, "default", "web"); err == nil || err.Error() != `pod "web" not found` {
		t.Error(err)
	}
}
