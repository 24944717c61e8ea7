package image

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/store"
)

// shortNames is a file in the store with what the image program has answered about short names: to find a
// stored image, no process is started. It is valid as long as the configuration files are unchanged.
type shortNames struct {
	Files string              // the state of the configuration files
	Names map[string][]string // candidates by reference
}

// maxShortNames bounds the file.
const maxShortNames = 1000

// candidates returns the names for which a short reference may stand by registries.conf(5), the most likely
// first; none for any other reference, and none if that file cannot be read.
func (s *Store) candidates(ref string) []reference.Name {
	if !reference.IsShort(ref) {
		return nil
	}
	state, exist := shortNameFiles()
	if !exist {
		return nil
	}
	path := filepath.Join(s.Dir, "shortnames.json")
	var known shortNames
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &known) != nil || known.Files != state || len(known.Names) >= maxShortNames {
		known = shortNames{Files: state, Names: map[string][]string{}}
	}
	names, ok := known.Names[ref]
	if !ok {
		if names, err = s.backend.Candidates(context.Background(), ref); err != nil {
			return nil
		}
		known.Names[ref] = names
		if text, err := json.Marshal(known); err == nil {
			_ = store.WriteVolatile(path, text) // on failure the program is started again
		}
	}
	var list []reference.Name
	for _, name := range names {
		if n, err := reference.Parse(name); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// shortNameFiles returns the state of all files that may configure short names, and whether there is any.
func shortNameFiles() (state string, exist bool) {
	home := os.Getenv("HOME")
	cache, config := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	paths := []string{os.Getenv("CONTAINERS_REGISTRIES_CONF"), os.Getenv("CONTAINERS_REGISTRIES_CONF_OVERRIDE"),
		"/var/cache/containers/short-name-aliases.conf", filepath.Join(cache, "containers/short-name-aliases.conf")}
	for _, dir := range []string{"/usr/share/containers", "/etc/containers", filepath.Join(config, "containers")} {
		paths = append(paths, filepath.Join(dir, "registries.conf"))
		for _, dropIns := range []string{"registries.conf.d", "registries.rootful.conf.d", "registries.rootless.conf.d", fmt.Sprintf("registries.rootless.conf.d/%d", os.Geteuid())} {
			paths = append(paths, filepath.Join(dir, dropIns))
			entries, err := os.ReadDir(filepath.Join(dir, dropIns))
			if err == nil {
				for _, e := range entries {
					paths = append(paths, filepath.Join(dir, dropIns, e.Name()))
				}
			}
		}
	}
	var all strings.Builder
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil {
			exist = true
			fmt.Fprintf(&all, "%s %d %d\n", path, st.Size(), st.ModTime().UnixNano())
		}
	}
	return all.String(), exist
}
