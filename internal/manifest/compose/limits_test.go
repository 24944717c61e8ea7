package compose

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// attack converts compose.yaml of a directory, and returns what is wrong with it.
func attack(t *testing.T, files map[string]string, confined bool) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case text == "FIFO":
			err = syscall.Mkfifo(path, 0o600)
		case strings.HasPrefix(text, "LINK "):
			err = os.Symlink(text[len("LINK "):], path)
		default:
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r := convert(context.Background(), api.Request{Files: []string{"compose.yaml"}, Project: "p", Confined: confined}, host{strings.NewReader(""), os.Stat, limitProject})
	if strings.Contains(r.Manifest, "stolen") {
		t.Errorf("the manifest has the file or the variable:\n%s", r.Manifest)
	}
	var lines []string
	for _, p := range r.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

const web = "services: {web: {image: i, %s}}\n"

// TestLimits checks that no compose file takes all memory, or waits for ever.
func TestLimits(t *testing.T) {
	service := func(attributes string) string { return fmt.Sprintf(web, attributes) }
	var doubling strings.Builder
	doubling.WriteString("V0=" + strings.Repeat("x", 64) + "\n")
	for i := range 60 {
		fmt.Fprintf(&doubling, "V%d=${V%d}${V%[2]d}\n", i+1, i)
	}
	large := strings.Repeat("#"+strings.Repeat("x", 1023)+"\n", 1025)
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"env file without end":         {map[string]string{"compose.yaml": service("env_file: /dev/zero")}, "compose.yaml, line 1: services.web.env_file: cannot be read: /dev/zero is not a regular file"},
		"env file that is a FIFO":      {map[string]string{"compose.yaml": service("env_file: e"), "e": "FIFO"}, "services.web.env_file: cannot be read: e is not a regular file"},
		"label file that is a FIFO":    {map[string]string{"compose.yaml": service("label_file: e"), "e": "FIFO"}, "services.web.label_file: cannot be read: e is not a regular file"},
		"large env file":               {map[string]string{"compose.yaml": service("env_file: e"), "e": large}, "services.web.env_file: cannot be read: e has more than 1 MiB"},
		"doubling env file":            {map[string]string{"compose.yaml": service("env_file: e"), "e": doubling.String()}, "have more than 64 MiB"},
		"doubling .env":                {map[string]string{"compose.yaml": service("command: a"), ".env": doubling.String()}, "have more than 64 MiB"},
		".env that is a FIFO":          {map[string]string{"compose.yaml": service("command: a"), ".env": "FIFO"}, ".env is not a regular file"},
		"variable many times":          {map[string]string{"compose.yaml": service("command: [" + strings.Repeat("$V,", 200) + "]"), ".env": "V=" + strings.Repeat("x", 1<<19) + "\n"}, "64 MiB"},
		"secret without end":           {map[string]string{"compose.yaml": service("secrets: [s]") + "secrets: {s: {file: /dev/zero}}"}, "secrets.s.file: cannot be read: /dev/zero is not a regular file"},
		"config that is a FIFO":        {map[string]string{"compose.yaml": service("configs: [s]") + "configs: {s: {file: f}}", "f": "FIFO"}, "configs.s.file: cannot be read: f is not a regular file"},
		"compose file is a FIFO":       {map[string]string{"compose.yaml": "FIFO"}, "compose.yaml is not a regular file"},
		"large compose file":           {map[string]string{"compose.yaml": service("command: a") + large}, "compose.yaml has more than 1 MiB"},
		"include of a FIFO":            {map[string]string{"compose.yaml": "include: [f]\n" + service("command: a"), "f": "FIFO"}, "include: f is not a regular file"},
		"extends of a FIFO":            {map[string]string{"compose.yaml": service("extends: {file: f, service: a}"), "f": "FIFO"}, "extends: f is not a regular file"},
		"env file of an include":       {map[string]string{"compose.yaml": "include: [{path: b.yaml, env_file: e}]\n" + service("command: a"), "b.yaml": "services: {}", "e": "FIFO"}, "include: e is not a regular file"},
		"includes without number":      {manyIncludes(), "more than 1000 files are included or extended"},
		"scale":                        {map[string]string{"compose.yaml": service("scale: 2000000000")}, "services.web.scale: is refused: a project has at most 1000 pods"},
		"all ports":                    {map[string]string{"compose.yaml": service(`ports: ["1-65535:1-65535"]`)}, "services.web.ports: is refused: a project has at most 10000 ports"},
		"large environment, many pods": {map[string]string{"compose.yaml": service("scale: 1000, env_file: e"), "e": "V=" + strings.Repeat("x", 1<<19)}, "the manifest has more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := attack(t, tt.files, false); !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// manyIncludes returns files each of which includes the next one twice.
func manyIncludes() map[string]string {
	files := map[string]string{"30/compose.yaml": "services: {}\n", "compose.yaml": "include: [0/compose.yaml]\nservices: {web: {image: i}}\n"}
	for i := range 30 {
		files[fmt.Sprintf("%d/compose.yaml", i)] = fmt.Sprintf("include: [../%d/compose.yaml, ../%[1]d/compose.yaml]\n", i+1)
	}
	return files
}

// TestPolicyConfinesFiles checks that under a policy a compose file has no files outside its directory, and no
// variables of the user.
func TestPolicyConfinesFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("KEY=stolen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	included := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(included, []byte("services: {b: {image: stolen}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", "stolen")
	service := func(attributes string) string { return fmt.Sprintf(web, attributes) }
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"secret":                       {map[string]string{"compose.yaml": service("secrets: [s]") + "secrets: {s: {file: " + outside + "}}"}, "outside the project's directory"},
		"secret by a link":             {map[string]string{"compose.yaml": service("secrets: [s]") + "secrets: {s: {file: ./l}}", "l": "LINK " + outside}, "outside the project's directory"},
		"secret by a linked directory": {map[string]string{"compose.yaml": service("secrets: [s]") + "secrets: {s: {file: ./l/secret}}", "l": "LINK " + filepath.Dir(outside)}, "outside the project's directory"},
		"config":                       {map[string]string{"compose.yaml": service("configs: [s]") + "configs: {s: {file: " + outside + "}}"}, "outside the project's directory"},
		"env file":                     {map[string]string{"compose.yaml": service("env_file: " + outside)}, "outside the project's directory"},
		"optional env file":            {map[string]string{"compose.yaml": service("env_file: [{path: " + outside + ", required: false}]")}, "outside the project's directory"},
		"label file":                   {map[string]string{"compose.yaml": service("label_file: " + outside)}, "outside the project's directory"},
		".env by a link":               {map[string]string{"compose.yaml": service("command: $KEY"), ".env": "LINK " + outside}, "outside the project's directory"},
		"include":                      {map[string]string{"compose.yaml": "include: [" + included + "]\n" + service("command: a")}, "outside the project's directory"},
		"include in a second document": {map[string]string{"compose.yaml": service("command: a") + "---\ninclude: [" + included + "]\n"}, "outside the project's directory"},
		"env file of an include":       {map[string]string{"compose.yaml": "include: [{path: b.yaml, env_file: " + outside + "}]\n" + service("command: a"), "b.yaml": "services: {b: {image: i, command: $KEY}}"}, "env_file and project_directory are refused"},
		".env of an include":           {map[string]string{"compose.yaml": "include: [d/b.yaml]\n" + service("command: a"), "d/b.yaml": "services: {b: {image: i, command: $KEY}}", "d/.env": "LINK " + outside}, "outside the project's directory"},
		"extends":                      {map[string]string{"compose.yaml": service("extends: {file: " + included + ", service: b}")}, "outside the project's directory"},
		"name with a variable":         {map[string]string{"compose.yaml": "include: ['$F']\n" + service("command: a"), ".env": "F=" + included}, "no variable names a file"},
		"variable":                     {map[string]string{"compose.yaml": service("command: $TOKEN")}, "the variable TOKEN is not used"},
		"variable in environment":      {map[string]string{"compose.yaml": service("environment: [TOKEN]")}, "the variable TOKEN is not used"},
		"variable as a secret":         {map[string]string{"compose.yaml": service("secrets: [s]") + "secrets: {s: {environment: TOKEN}}"}, "the variable TOKEN is not used"},
		"variable in a default":        {map[string]string{"compose.yaml": service("command: '${NONE:-$TOKEN}'")}, "the variable TOKEN is not used"},
		"nothing":                      {map[string]string{"compose.yaml": service("env_file: e, command: $WORD"), "e": "A=b\n", ".env": "WORD=yes\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := attack(t, tt.files, true)
			if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
