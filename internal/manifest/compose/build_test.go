package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// TestInputs: what changes the hash of a build, and what does not.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write("Dockerfile", "FROM scratch")
	write("src/main.go", "a")
	write(".dockerignore", "# made here\n/out\n*.log\n!keep.log\n**/tmp\n")
	build := api.Build{Image: "x", Context: dir, Dockerfile: "Dockerfile"}
	hash := func() string {
		t.Helper()
		b := withInputs([]api.Build{build})[0]
		if b.Problem != "" {
			t.Fatal(b.Problem)
		}
		return b.Inputs
	}
	last := hash()
	check := func(what string, changes bool, change func()) {
		t.Helper()
		change()
		now := hash()
		if (now != last) != changes {
			t.Errorf("%s: changed %t", what, now != last)
		}
		last = now
	}
	check("nothing", false, func() {})
	check("an excluded directory", false, func() { write("out/x", "1") })
	check("an excluded file", false, func() { write("a.log", "1") })
	check("excluded at any depth", false, func() { write("src/tmp/x", "1") })
	check("an exception", true, func() { write("keep.log", "1") })
	check("a new file", true, func() { write("src/b.go", "b") })
	check("a size", true, func() { write("src/main.go", "ab") })
	check("a time", true, func() { _ = os.Chtimes(filepath.Join(dir, "src/main.go"), time.Unix(2, 0), time.Unix(2, 0)) })
	check("a mode", true, func() { _ = os.Chmod(filepath.Join(dir, "src/main.go"), 0o755) })
	check("a link", true, func() { _ = os.Symlink("main.go", filepath.Join(dir, "src/link")) })
	check("the Dockerfile, with its size and time", true, func() { write("Dockerfile", "FROM scratcH") })
	check("an argument", true, func() { build.Args = map[string]string{"A": "1"} })
	check("the target", true, func() { build.Target = "app" })
	check("the patterns of the Dockerfile", true, func() { write("Dockerfile.dockerignore", "src\n") })
	check("excluded by these", false, func() { write("src/c.go", "c") })
	check("an inline Dockerfile", true, func() { build.Inline = "FROM x" })

	build.Inline, build.Dockerfile = "", "Missing"
	if b := withInputs([]api.Build{build})[0]; !strings.Contains(b.Problem, "cannot read the Dockerfile: open "+dir+"/Missing") {
		t.Errorf("a missing Dockerfile: %q", b.Problem)
	}
	if b := withInputs([]api.Build{{Context: "https://example.org/x.git"}})[0]; b.Problem != "" || b.Inputs == "" {
		t.Errorf("a remote context: %+v", b)
	}
}

// TestBuild has a build with all that is supported, by the attribute names of the file.
func TestBuild(t *testing.T) {
	r := convertIn(t, "build", api.Request{})
	for _, p := range r.Problems {
		t.Error(p)
	}
	if len(r.Builds) != 3 {
		t.Fatalf("builds: %+v", r.Builds)
	}
	all := r.Builds[0]
	if all.Image != "localhost/build-all:latest" || !strings.HasSuffix(all.Context, "/testdata/build/src") || all.Dockerfile != "Dockerfile.prod" || all.Args["VERSION"] != "3" ||
		all.Target != "app" || all.Labels["org.example"] != "x" || all.Network != "none" || all.ExtraHosts[0] != "db:10.0.0.1" || all.ShmSize != 1<<20 || !all.NoCache || !all.Pull || all.Always {
		t.Errorf("all: %+v", all)
	}
	if b := r.Builds[1]; b.Inline != "FROM scratch\n" || !b.Always || b.Image != "registry.example.org/inline:1" {
		t.Errorf("inline: %+v", b)
	}
	if b := r.Builds[2]; b.Dockerfile != "Dockerfile" || !b.IsLocal() {
		t.Errorf("short: %+v", b)
	}
	for text, count := range map[string]int{"imagePullPolicy: Never": 2, "imagePullPolicy: IfNotPresent": 1} {
		if strings.Count(r.Manifest, text) != count {
			t.Errorf("%s is not %d times in\n%s", text, count, r.Manifest)
		}
	}
	confined := convertIn(t, "build", api.Request{Confined: true})
	if len(confined.Problems) != 3 || !strings.Contains(confined.Problems[0].Text, "is refused under a policy") {
		t.Errorf("confined: %v", confined.Problems)
	}
}

// TestChoose selects services, with and without what they depend on, and whatever their profiles are.
func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		request api.Request
		want    string
	}{
		"all":           {api.Request{}, "db web"},
		"one":           {api.Request{Services: []string{"db"}}, "db"},
		"dependencies":  {api.Request{Services: []string{"web"}}, "db web"},
		"alone":         {api.Request{Services: []string{"web"}, Alone: true}, "web"},
		"of a profile":  {api.Request{Services: []string{"tool"}}, "tool"},
		"with profiles": {api.Request{Profiles: []string{"tools"}}, "db tool web"},
	} {
		t.Run(name, func(t *testing.T) {
			r := convertIn(t, "choose", tc.request)
			for _, p := range r.Problems {
				t.Error(p)
			}
			var names []string
			for _, s := range r.Services {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != tc.want || r.Project != "choose" || strings.Join(r.Known, " ") != "db tool web" {
				t.Errorf("%s of %v in %s, want %s", got, r.Known, r.Project, tc.want)
			}
			if has := strings.Contains(r.Manifest, "name: choose-cache"); has != strings.Contains(tc.want, "tool") {
				t.Errorf("the volume of tool: %t", has)
			}
		})
	}
	r := convertIn(t, "choose", api.Request{Services: []string{"none"}, Model: true})
	if len(r.Problems) != 1 || r.Problems[0].Text != "there is no service none: the services are db, tool, web" || r.Model != "" {
		t.Errorf("an unknown service: %v", r.Problems)
	}
	if r := convertIn(t, "choose", api.Request{Model: true}); !strings.Contains(r.Model, "condition: service_started") {
		t.Errorf("the merged file: %s", r.Model)
	}
}
