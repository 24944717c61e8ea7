package credentials

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/image/reference"
)

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
		name, err := reference.Parse(image)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, as := range For(name, [][]byte{[]byte(text), []byte("rubbish")}) {
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

func TestAccountKey(t *testing.T) {
	for in, want := range map[string]string{
		"docker.io": "docker.io", "https://index.docker.io/v1/": "docker.io", "host:5000": "host:5000",
		"https://host:5000/v2/": "host:5000", "host.example/team": "host.example/team",
		"localhost": "localhost", "registry:443": "registry:443",
	} {
		if got, err := RegistryKey(in); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "/", "a b", "host.example/UPPER", "host.example/../x", "https://", "registry", "registry/team"} {
		if got, err := RegistryKey(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
