package quadlet

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/manifest"
)

// publishedSet are the files of podman's tests, with the drop-ins of each.
func publishedSet(t *testing.T) (*Set, []string) {
	archive, err := txtar.ParseFile("testdata/published.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s := testSet()
	var names []string
	for _, f := range archive.Files {
		dir, _ := filepath.Split(f.Name)
		if dir == "" {
			names = append(names, f.Name)
			s.Files[f.Name] = []File{{"/q/" + f.Name, string(f.Data)}}
			continue
		}
		of := strings.TrimSuffix(dir, ".d/")
		for name, files := range s.Files {
			prefix, rest, _ := strings.Cut(name, "@")
			if name == of || prefix+"@"+filepath.Ext(rest) == of {
				s.Files[name] = append(files, File{"/q/" + f.Name, string(f.Data)})
			}
		}
	}
	return s, names
}

// outcome writes what becomes of a file: its unit, or why it is refused. A volume and a network are used by a container,
// and a pod has a container.
func outcome(s *Set, name string) (text string, runs bool) {
	wrapper := testSet("# a.container\n[Container]\nImage=image\nPod=" + name + "\n")
	switch filepath.Ext(name) {
	case ".volume":
		wrapper = testSet("# a.container\n[Container]\nImage=image\nVolume=" + name + ":/v\n")
	case ".network":
		wrapper = testSet("# a.container\n[Container]\nImage=image\nNetwork=" + name + "\n")
	case ".pod":
	default:
		wrapper = testSet()
	}
	all := &Set{Files: maps.Clone(s.Files), Host: s.Host, Specifiers: s.Specifiers}
	maps.Copy(all.Files, wrapper.Files)
	if name == "dependent.error.container" {
		delete(all.Files, "basic.container")
	}
	wanted := name
	if ext := filepath.Ext(name); ext == ".volume" || ext == ".network" {
		wanted = "a.container"
	}
	u, err := all.Unit(wanted)
	if err != nil {
		return err.Error(), false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: exit-code-from=%s when-running=%v quiet=%v network=%v oneshot=%v", u.Service, u.ExitFrom, u.WhenRunning, u.Quiet, u.NeedsNetwork, u.OneShot)
	if len(u.Yaml) > 0 {
		fmt.Fprintf(&b, " yaml=%s %s", u.Yaml, u.PodOptions())
	}
	if len(u.Reload) > 0 {
		fmt.Fprintf(&b, " reload=%q", u.Reload)
	}
	for _, section := range slices.Sorted(maps.Keys(u.Extra)) {
		for _, line := range u.Extra[section] {
			fmt.Fprintf(&b, "\n[%s] %s", section, line)
		}
	}
	for _, o := range u.Objects {
		object, err := json.Marshal(o)
		if err != nil {
			return err.Error(), false
		}
		fmt.Fprintf(&b, "\n%s", object)
	}
	text = b.String()
	if len(u.Objects) > 0 {
		manifestText, err := u.Manifest()
		if err == nil {
			_, err = manifest.LoadInNamespace(name, manifestText, "", nil)
		}
		if err != nil {
			return text + "\n" + err.Error(), false
		}
	}
	return text, true
}

// TestPublishedFiles: what becomes of each file of podman's tests. A file that podman refuses is refused here, too.
func TestPublishedFiles(t *testing.T) {
	s, names := publishedSet(t)
	var b strings.Builder
	counts := map[string]string{}
	running, all := map[string]int{}, map[string]int{}
	for _, name := range names {
		text, runs := outcome(s, name)
		kind, word := strings.TrimPrefix(filepath.Ext(name), "."), "refused"
		bad := strings.Contains(s.Files[name][0].Text, "# podman refuses it")
		switch {
		case bad && runs:
			t.Errorf("%s: podman refuses it", name)
		case bad:
			word = "refused, as by podman"
		case runs:
			word = "runs"
			running[kind]++
		}
		if !bad {
			all[kind]++
		}
		fmt.Fprintf(&b, "== %s: %s\n%s\n", name, word, strings.TrimRight(text, "\n"))
	}
	for kind, n := range all {
		counts[kind] = fmt.Sprintf("%d of %d", running[kind], n)
	}
	golden.Check(t, "testdata/published.golden", fmt.Sprintf("files that podman takes and podrun runs: %v\n", counts)+b.String())
}
