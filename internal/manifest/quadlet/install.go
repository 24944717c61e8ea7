package quadlet

import (
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
)

// Units yields the names of the files that have units, in order. Containers of pods, and templates without an instance,
// have none.
func (s *Set) Units() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.Files)) {
			if !isUnit(name) || s.InPod(name) || s.isTemplate(name) {
				continue
			}
			if !yield(name) {
				return
			}
		}
	}
}

// isTemplate reports whether a file is a template without a default instance.
func (s *Set) isTemplate(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	q, err := parseAll(s.Files[name])
	return strings.HasSuffix(stem, "@") && err == nil && q.last("Install", "DefaultInstance") == ""
}

// linkDirs maps keys of [Install] to the ends of the directories with the links.
func linkDirs() map[string]string {
	return map[string]string{"WantedBy": ".wants/", "RequiredBy": ".requires/", "UpheldBy": ".upholds/"}
}

// Links returns the links to a unit that the lines of its section [Install] ask for, below the directory of units. A
// generator makes them: systemctl enable does not change its units.
func Links(unit string, install []string) (list []string) {
	for _, line := range install {
		key, value, _ := strings.Cut(line, "=")
		names, _ := splitWords(value)
		for _, name := range names {
			link := name
			if dir := linkDirs()[key]; dir != "" {
				link = name + dir + unit
			} else if key != "Alias" {
				continue
			}
			list = append(list, strings.TrimPrefix(path.Clean("/"+link), "/"))
		}
	}
	return list
}
