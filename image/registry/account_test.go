package registry

import "testing"

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
