package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

func TestSplitName(t *testing.T) {
	for name, want := range map[string][2]string{
		"docker.io/library/x:1":    {"docker.io/library/x", "1"},
		"localhost:5000/x":         {"localhost:5000/x", "<none>"},
		"localhost:5000/x:v1":      {"localhost:5000/x", "v1"},
		"example.org/x@sha256:abc": {"example.org/x", "<none>"},
		"<none>":                   {"<none>", "<none>"},
	} {
		if repository, tag := splitName(name); repository != want[0] || tag != want[1] {
			t.Errorf("%s: %s, %s", name, repository, tag)
		}
	}
}

// TestFormatImages: docker's fields, a line for each name; a wrong template is an error of usage.
func TestFormatImages(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	list := []image.Info{{ID: "sha256:0123456789abcdef", Names: []string{"example.org/x:1", "y:2"}, Digest: "sha256:d", Size: 2e6, Created: now.Add(-time.Minute)}}
	for format, want := range map[string]string{
		"{{.Repository}}:{{.Tag}} {{.Size}} {{.CreatedSince}}": "example.org/x:1 2.0 MB 60s ago\ny:2 2.0 MB 60s ago\n",
		"{{json .Name}}": "\"example.org/x:1\"\n\"y:2\"\n",
		"json": `{"Name":"example.org/x:1","Repository":"example.org/x","Tag":"1","ID":"0123456789ab","Digest":"sha256:d","CreatedAt":"2026-01-01T00:04:00Z","CreatedSince":"60s ago","Size":"2.0 MB"}` + "\n" +
			`{"Name":"y:2","Repository":"y","Tag":"2","ID":"0123456789ab","Digest":"sha256:d","CreatedAt":"2026-01-01T00:04:00Z","CreatedSince":"60s ago","Size":"2.0 MB"}` + "\n",
	} {
		var out bytes.Buffer
		if err := formatImages(&cmdutil.Env{Out: &out}, list, now, format); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
	for _, format := range []string{"{{.", "{{.Nosuch}}"} {
		if err := formatImages(&cmdutil.Env{Out: io.Discard}, list, now, format); err == nil || !strings.HasPrefix(err.Error(), "--format: ") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestWriteAtomically: a file is complete or as before; a directory is refused.
func TestWriteAtomically(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			io.WriteString(w, text)
			return err
		}
	}
	broken := errors.New("the layer is damaged")
	for _, step := range []struct {
		text string
		err  error
		want string
	}{{"half", broken, ""}, {"whole", nil, "whole"}, {"half", broken, "whole"}, {"other", nil, "other"}} {
		if err := writeAtomically(path, write(step.text, step.err)); !errors.Is(err, step.err) {
			t.Errorf("%s: %v", step.text, err)
		}
		if text, _ := os.ReadFile(path); string(text) != step.want {
			t.Errorf("%q, want %q", text, step.want)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left: %v, %v", list, err)
	}
	if err := writeAtomically(dir, write("x", nil)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
	if err := writeAtomically(os.DevNull, write("x", nil)); err != nil {
		t.Errorf("to a device: %v", err)
	}
}
