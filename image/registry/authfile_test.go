package registry

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/containers/image/v5/docker/reference"
)

func TestAuthFile(t *testing.T) {
	tests := []struct {
		name       string
		uid        int
		runtimeDir string
		err        error
		want       string
	}{
		{"root", 0, "", fs.ErrPermission, ""},
		{"in a login session", 1000, "/run/user/1000", fs.ErrPermission, ""},
		{"no file", 1000, "", fs.ErrNotExist, ""},
		{"a file", 1000, "", nil, ""},
		{"closed by root", 1000, "", fs.ErrPermission, "/home/u/.config/containers/auth.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked string
			got := defaultAuthFile(tt.uid, "/home/u", tt.runtimeDir, func(path string) error {
				asked = path
				return tt.err
			})
			if got != tt.want {
				t.Errorf("file %q, want %q", got, tt.want)
			}
			if asked != "" && asked != "/run/containers/1000/auth.json" {
				t.Errorf("looked at %q", asked)
			}
		})
	}
}

func TestLoginsFor(t *testing.T) {
	text := `{"auths":{
"https://index.docker.io/v1/":{"username":"hub","password":"p"},
"*.example.com":{"auth":"YWxsOnA="},
"a.example.com/team":{"auth":"dGVhbTpwOnE="},
"host:5000":{"username":"port","password":"p"},
"https://v2.example.org/v2/x":{"identitytoken":"t","username":"token"}}}`
	for image, want := range map[string]string{
		"busybox":                  "hub",
		"docker.io/me/x":           "hub",
		"b.example.com/x":          "all",
		"a.example.com/x":          "all",
		"a.example.com/team":       "team all",
		"a.example.com/team/x":     "team all",
		"a.example.com/teams/x":    "all",
		"a.b.example.com/x":        "",
		"example.com/x":            "",
		"host:5000/x":              "port",
		"host:5001/x":              "",
		"v2.example.org/x/y":       "token",
		"v2.example.org/xy":        "",
		"evil.org/a.example.com/x": "",
	} {
		name, err := reference.ParseNormalizedNamed(image)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, as := range credentialsFor(name, [][]byte{[]byte(text), []byte("rubbish")}) {
			got = append(got, as.Username)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	if err := ValidateAuthFile([]byte(text)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "[]", `{"auths":{"a":{"auth":"c2VjcmV0"}}}`, `{"auths":{"a":{"auth":"!secret"}}}`, `{"a":1}`} {
		if err := ValidateAuthFile([]byte(bad)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
