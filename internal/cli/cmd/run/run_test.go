package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

func TestLiteral(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"echo $HOME $":    "echo $HOME $",
		"$(A) $$(A) $$ x": "$$(A) $$$$(A) $$$ x",
		"100$$":           "100$$$",
	} {
		if got := literal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestContainerName(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "busybox", "quay.io/team/my_app.v2:1": "my-app-v2", "localhost:5000/web@sha256:aa": "web", "x/___": "run",
	} {
		if got := containerName(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1024": 1024, "64b": 64, "512m": 512 << 20, "512MB": 512 << 20, "512Mi": 512 << 20, "1.5g": 3 << 29, "2GiB": 2 << 30,
		"b": 0, "": 0, "m": 0, "-1m": 0, "0": 0, "1x": 0, "nan": 0, "inf": 0, "9e18g": 0,
	} {
		got, err := parseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParsePort(t *testing.T) {
	for word, want := range map[string]corev1.ContainerPort{
		"8080:80":             {HostPort: 8080, ContainerPort: 80, Protocol: "TCP"},
		"127.0.0.1:53:53/udp": {HostIP: "127.0.0.1", HostPort: 53, ContainerPort: 53, Protocol: "UDP"},
		"[::1]:8080:80/tcp":   {HostIP: "::1", HostPort: 8080, ContainerPort: 80, Protocol: "TCP"},
		"x:80":                {}, "80:": {}, "": {}, "0:80": {}, "80:0": {}, "1.2.3:80:80": {}, "80:80/sctp": {}, "65536:80": {}, "1-2:1-2": {},
	} {
		got, err := parsePort(word)
		if err == nil && got != want || (err == nil) != (want.ContainerPort > 0) {
			t.Errorf("%q: %+v, %v; want %+v", word, got, err, want)
		}
	}
	for _, word := range []string{"80", "127.0.0.1::80", "80/udp"} {
		if got, err := parsePort(word); err != nil || got.HostPort == 0 || got.ContainerPort != 80 {
			t.Errorf("%q: %+v, %v; want a free port", word, got, err)
		}
	}
}

func TestParseDevice(t *testing.T) {
	for word, want := range map[string]string{
		"/dev/a": "/dev/a /dev/a", "/dev/a:/dev/b": "/dev/a /dev/b", "/dev/a:rwm": "/dev/a /dev/a", "/dev/a:/dev/b:rw": "/dev/a /dev/b",
		"dev/a": "", "/dev/a:b:rw": "", "/dev/a:/dev/b:r": "", "/dev/a:/b:rw:x": "", "/dev/a:": "",
	} {
		host, inside, err := parseDevice(word)
		if got := strings.TrimSpace(host + " " + inside); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", word, got, err, want)
		}
	}
}

// TestSetEnv: docker's format of files, and docker's order: -e overrides the files.
func TestSetEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	text := "\uFEFF# comment\n\n  A=1\r\nB= \"x\" # y\nFROM\nUNSET\nC=a=b\nA=2"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &options{files: []string{file}, variables: []string{"C=$(A)", "D=", "FROM"}, env: &cmdutil.Env{Getenv: func(name string) string {
		return map[string]string{"FROM": "outside"}[name]
	}}}
	var c corev1.Container
	if err := o.setEnv(nil, &c); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range c.Env {
		got = append(got, v.Name+"="+v.Value)
	}
	if want := []string{`B= "x" # y`, "A=2", "C=$$(A)", "D=", "FROM=outside"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
