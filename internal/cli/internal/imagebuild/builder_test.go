package imagebuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

// TestCommands has the commands of each builder for all that a build can have, and for a context that only the builder
// reads.
func TestCommands(t *testing.T) {
	all := api.Build{
		Image: "localhost/web:latest", Context: "/src", Dockerfile: "docker/Dockerfile", Args: map[string]string{"B": "2", "A": "1"}, Target: "app",
		Labels: map[string]string{"l": "x"}, Network: "host", ExtraHosts: []string{"a:10.0.0.1"}, ShmSize: 1024, NoCache: true, Pull: true,
	}
	common := "build -t localhost/web:latest -f /src/docker/Dockerfile --build-arg A=1 --build-arg B=2 --label l=x --add-host a:10.0.0.1 --target app --network host --shm-size 1024 --no-cache --pull /src\n"
	remote := api.Build{Image: "localhost/web:latest", Context: "https://example.org/web.git#main", Dockerfile: "Dockerfile"}
	plain := "build -t localhost/web:latest -f Dockerfile https://example.org/web.git#main\n"
	push, save := "push localhost/web:latest docker-archive:/tmp/image.tar:localhost/web:latest\n", "-o /tmp/image.tar localhost/web:latest\n"
	want := map[string][2]string{
		"buildah": {common + push, plain + push},
		"docker":  {common + "save " + save, plain + "save " + save},
		"podman":  {common + "save --format docker-archive " + save, plain + "save --format docker-archive " + save},
		"buildctl": {
			"build --frontend dockerfile.v0 --output type=docker,name=localhost/web:latest,dest=/tmp/image.tar --local context=/src --local dockerfile=/src/docker --opt filename=Dockerfile " +
				"--opt build-arg:A=1 --opt build-arg:B=2 --opt label:l=x --opt add-hosts=a=10.0.0.1 --opt target=app --opt force-network-mode=host --opt shm-size=1024 --opt image-resolve-mode=pull --no-cache\n",
			"build --frontend dockerfile.v0 --output type=docker,name=localhost/web:latest,dest=/tmp/image.tar --opt context=https://example.org/web.git#main --opt filename=Dockerfile\n",
		},
	}
	for _, b := range builders() {
		for i, build := range []api.Build{all, remote} {
			var got strings.Builder
			for _, words := range b.commands(build, "/tmp/image.tar") {
				got.WriteString(strings.Join(words, " ") + "\n")
			}
			if got.String() != want[b.name][i] {
				t.Errorf("%s:\n got %swant %s", b.name, got.String(), want[b.name][i])
			}
		}
	}
}

// TestFind: the first builder that is in PATH, or the named one.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := find(""); err == nil || report.Hint(err) != "apt install buildah" {
		t.Errorf("without a builder: %v", err)
	}
	for _, name := range []string{"podman", "docker", "buildctl", "buildah"} { // each is preferred to those before it
		if _, err := find(name); err == nil {
			t.Errorf("%s was found", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, named := range []string{"", name, filepath.Join(dir, name)} {
			if b, err := find(named); err != nil || b.name != name || b.path != filepath.Join(dir, name) {
				t.Errorf("%q: %s %s, %v", named, b.name, b.path, err)
			}
		}
	}
	if _, err := find("make"); report.ClassOf(err) != report.Usage {
		t.Errorf("an unknown builder: %v", err)
	}
}
