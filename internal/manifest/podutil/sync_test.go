package podutil

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

func TestParseSync(t *testing.T) {
	got, err := ParseSync(`
- {path: ./src, target: /app, ignore: [node_modules/]}
- {path: package.json, action: rebuild}
- {path: /etc/app.conf, target: /etc/app.conf, action: sync+restart, container: app, initial_sync: true}
`)
	want := []api.SyncRule{
		{Path: "./src", Target: "/app", Action: "sync", Ignore: []string{"node_modules/"}},
		{Path: "package.json", Action: "rebuild"},
		{Path: "/etc/app.conf", Target: "/etc/app.conf", Action: "sync+restart", Container: "app", InitialSync: true},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for text, wrong := range map[string]string{
		"a: b":                           "no list of rules",
		"[{path: a, target: /b, to: c}]": `unknown field "to"`,
		"[{target: /b}]":                 "rule 1: path is missing",
		"[{path: a, target: b}]":         `rule 1: target "b" is not an absolute path`,
		"[{path: a}]":                    `target "" is not an absolute path`,
		"[{path: a, action: restart, target: /b}]": "target has no meaning with action restart",
		"[{path: a, action: copy}]":                `action "copy" is none of`,
	} {
		if _, err := ParseSync(text); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
