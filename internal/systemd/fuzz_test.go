package systemd

import (
	"slices"
	"strings"
	"testing"
)

// FuzzUnitFile: no text crashes the readers of podrun's unit files, and the manifests of a
// generated unit are read back unchanged.
func FuzzUnitFile(f *testing.F) {
	f.Add("[Service]\nExecReload=/usr/bin/podrun up --detach --timeout 60s \"/a b.yaml\" /c%%.yaml\n", "/a b.yaml")
	f.Add("\n[X-Podrun]\nManifest=/a%%b\n", `/we"ird\$%.yaml`)
	f.Fuzz(func(t *testing.T, text, path string) {
		IsGenerated([]byte(text))
		ManifestOf([]byte(text))
		FilesOf([]byte(text))
		if path == "" || strings.ContainsAny(path, "\n\r\x00") {
			return
		}
		if got := splitWords(joinWords([]string{path, "/second"})); !slices.Equal(got, []string{path, "/second"}) {
			t.Fatalf("%q is read as %q", path, got)
		}
	})
}
