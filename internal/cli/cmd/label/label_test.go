package label

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// TestApply: values are set and removed in a copy; an existing value is replaced only with --overwrite.
func TestApply(t *testing.T) {
	type labels = map[string]string
	for _, tt := range []struct {
		name      string
		set       labels
		remove    string
		overwrite bool
		want      labels
		out, err  string
	}{
		{"a new one", labels{"tier": "front"}, "", false, labels{"app": "web", "tier": "front"}, "", ""},
		{"the same again", labels{"app": "web"}, "", false, labels{"app": "web"}, "", ""},
		{"another value", labels{"app": "db"}, "", false, nil, "", "pod/web: 'app' already has a value (web), and --overwrite is false"},
		{"another value, wanted", labels{"app": "db"}, "", true, labels{"app": "db"}, "", ""},
		{"removed", nil, "app", false, labels{}, "", ""},
		{"removed twice", nil, "tier", false, labels{"app": "web"}, "label \"tier\" not found.\n", ""},
	} {
		for _, annotate := range []bool{false, true} {
			var out bytes.Buffer
			o := &options{env: &cmdutil.Env{Out: &out}, annotate: annotate, set: tt.set, overwrite: tt.overwrite}
			if tt.remove != "" {
				o.remove = []string{tt.remove}
			}
			before := labels{"app": "web"}
			p := &corev1.Pod{}
			p.Labels, p.Annotations = before, before
			now, err := o.apply(p, "pod/web")
			changed, other := p.Labels, p.Annotations
			if annotate {
				changed, other = other, changed
				tt.out = ""
			}
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			if diff := cmp.Diff(tt.want, now) + cmp.Diff(tt.want, changed) + cmp.Diff(labels{"app": "web"}, other); err != nil || diff != "" || out.String() != tt.out {
				t.Errorf("%s: %v, %q\n%s", tt.name, err, out.String(), diff)
			}
		}
	}
}

// TestValidate: the API server's rules; the value of an annotation is any text.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		key, value      string
		label, annotate string
	}{
		{"tier", "front", "", ""},
		{"example.com/Tier", "", "", ""},
		{"tier", "two words", "invalid label value", ""},
		{"a b", "x", `invalid key "a b"`, `invalid key "a b"`},
		{"-a", "x", `invalid key "-a"`, `invalid key "-a"`},
		{"gone", "x", `can not both modify and remove "gone"`, `can not both modify and remove "gone"`},
	} {
		for annotate, want := range map[bool]string{false: tt.label, true: tt.annotate} {
			o := &options{annotate: annotate, set: map[string]string{tt.key: tt.value}, remove: []string{"gone"}}
			if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s, annotate %t: %v", tt.key, tt.value, annotate, err)
			}
		}
	}
	if err := (&options{list: true}).Validate(); err != nil {
		t.Errorf("--list alone: %v", err)
	}
}

func TestResult(t *testing.T) {
	set := map[string]string{"a": "b"}
	for want, o := range map[string]*options{"labeled": {set: set}, "unlabeled": {}, "annotated": {annotate: true}} {
		if got := o.result(true); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (&options{set: set}).result(false); got != "not labeled" {
		t.Error(got)
	}
}
