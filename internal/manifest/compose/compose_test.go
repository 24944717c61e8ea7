package compose

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// convertIn converts files of a directory below testdata. Its path is /project in the result.
func convertIn(t *testing.T, dir string, request api.Request) api.Result {
	t.Helper()
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("testdata", dir))
	for _, name := range []string{"COMPOSE_PROFILES", "COMPOSE_FILE", "COMPOSE_PROJECT_NAME"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	t.Setenv("TEST_TOKEN", "s3cret")
	r := convert(context.Background(), request, host{strings.NewReader(""), statProject, limitProject})
	t.Chdir(top)
	r.Manifest = strings.ReplaceAll(r.Manifest, filepath.Join(top, "testdata", dir), "/project")
	return r
}

// statProject finds the files of the project, and few others, whatever the machine has.
func statProject(name string) (fs.FileInfo, error) {
	if !strings.Contains(name, "/testdata/") && name != "/dev/null" && name != "/etc/localtime" {
		return nil, fs.ErrNotExist
	}
	return os.Stat(name)
}

// TestConvert compares the manifest of each directory of testdata with its golden file. Every manifest is
// valid.
func TestConvert(t *testing.T) {
	for _, dir := range []string{"stack", "homeassistant", "mosquitto", "frigate", "monitoring", "everything", "merge"} {
		t.Run(dir, func(t *testing.T) {
			r := convertIn(t, dir, api.Request{})
			for _, p := range r.Problems {
				t.Error(p)
			}
			golden.Check(t, filepath.Join("testdata", dir, "manifest.golden"), r.Manifest+warnings(r))
			if _, err := manifest.LoadInNamespace("manifest", []byte(r.Manifest), "", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func warnings(r api.Result) string {
	var b strings.Builder
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "# warning: %s\n", w)
	}
	return b.String()
}

// TestProblems has every refusal, with its line.
func TestProblems(t *testing.T) {
	r := convertIn(t, "bad", api.Request{Files: []string{"compose.yaml"}})
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, strings.ReplaceAll(p.String(), " "+machine+",", " ARCH,"))
	}
	if r.Manifest != "" {
		t.Error("there is a manifest")
	}
	golden.Check(t, "testdata/bad/problems.golden", strings.NewReplacer("linux/"+machine, "linux/ARCH", here(t), "HERE").Replace(b.String())+warnings(r))
}

// TestRequest selects files, profiles, variables and a name.
func TestRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		dir         string
		request     api.Request
		want, wants []string
	}{
		"no override file":   {"merge", api.Request{Files: []string{"compose.yaml"}}, []string{"web:1", "name: cache"}, []string{"three", "8080"}},
		"files in order":     {"merge", api.Request{Files: []string{"compose.yaml", "compose.override.yaml"}}, []string{"web:2", "three", "hostPort: 8080", "part-of: merge"}, []string{"hostPort: 80\n", "name: debug"}},
		"a profile":          {"merge", api.Request{Profiles: []string{"debug"}}, []string{"name: debug"}, nil},
		"a project":          {"merge", api.Request{Project: "other"}, []string{"part-of: other"}, []string{"part-of: merge"}},
		"a file of settings": {"monitoring", api.Request{EnvFiles: []string{"/dev/null"}}, []string{"value: admin\n"}, []string{"from-dot-env"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := convertIn(t, tc.dir, tc.request)
			for _, p := range r.Problems {
				t.Error(p)
			}
			for _, text := range tc.want {
				if !strings.Contains(r.Manifest, text) {
					t.Errorf("there is no %q in\n%s", text, r.Manifest)
				}
			}
			for _, text := range tc.wants {
				if strings.Contains(r.Manifest, text) {
					t.Errorf("there is %q in\n%s", text, r.Manifest)
				}
			}
		})
	}
}

// TestBroken has files that the library refuses.
func TestBroken(t *testing.T) {
	for text, want := range map[string]string{
		"services:\n  web:\n    image: x\n    bogus: 1\n": "standard input, line 4: services.web.bogus is not an attribute of the compose specification",
		"services:\n  web: {}\n":                          `standard input, line 2: service "web" has neither an image nor a build context specified`,
		"services:\n  web:\n    image: x\n    ports: 3\n": "standard input, line 4: services.web.ports must be a array",
		"services: [": "standard input: ",
		"services:\n  a: {image: x, depends_on: [a]}\n":                      "standard input: dependency cycle detected: a -> a",
		"services:\n  a: {image: x, environment: {A: '${B:?is missing}'}}\n": "is missing",
	} {
		r := convert(context.Background(), api.Request{Files: []string{"-"}, Project: "p"}, host{strings.NewReader(text), os.Stat, limitProject})
		if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), want) {
			t.Errorf("%q: %v, want %s", text, r.Problems, want)
		}
	}
	t.Chdir(t.TempDir())
	if r := convert(context.Background(), api.Request{}, host{limit: limitProject}); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Text, "name the file") {
		t.Errorf("without a file: %v", r.Problems)
	}
}

// TestEveryAttributeHasARow fails for an attribute of the specification without a row, and for a row without
// an attribute.
func TestEveryAttributeHasARow(t *testing.T) {
	rows, used := newRows(), map[string]bool{}
	for _, path := range schema.AttributePaths() {
		a, ok := rows.find(string(path))
		if !ok {
			t.Errorf("%s has no row", path)
		}
		used[a.path] = true
	}
	for path := range rows {
		if !used[path] {
			t.Errorf("%s is not an attribute", path)
		}
	}
}

const referencePage = "../../../docs/reference/compose.md"

// TestReferencePage keeps the users' page equal to the table that decides.
func TestReferencePage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Compose files

<!-- Written by go test ./internal/manifest/compose -update from the table; do not edit. -->

What podrun does with each attribute of the [compose specification](https://github.com/compose-spec/compose-spec).
[From docker compose to podrun](../how-to/from-docker-compose.md) explains how to use it. No attribute is ignored silently:

- **supported**: works as in docker compose, except for what the note names.
- **accepted**: has no effect; podrun prints a warning with its line.
- **refused**: a file that has it is an error with its line, before anything is created.

An attribute that is not listed is part of a listed one, and handled in the same way. ` + "`*`" + ` stands for any name, ` + "`[]`" + ` for the items of a list.

| attribute | | note |
|---|---|---|
`)
	for _, a := range table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.path, a.level, a.note)
	}
	golden.Check(t, referencePage, b.String())
}

// here returns the directory of the tests. Golden files do not contain it.
func here(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// limitProject has a hard limit of open files.
func limitProject(name string) (uint64, bool) { return 5000, name == "nofile" }

// TestNames has names that collide, and services that cannot share a network.
func TestNames(t *testing.T) {
	r := convertIn(t, "names", api.Request{Files: []string{"compose.yaml"}})
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	golden.Check(t, "testdata/names/problems.golden", b.String()+warnings(r))
}

// TestAllFaults reports all faults of the files at once, in the order of the files. Each has its line, also if it is in an
// anchor, or in a file that is included or extended.
func TestAllFaults(t *testing.T) {
	r := convertIn(t, "faults", api.Request{Files: []string{"z.yaml", "a.yaml"}})
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	golden.Check(t, "testdata/faults/problems.golden", b.String()+warnings(r))
}
