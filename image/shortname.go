package image

import (
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
	home, cache := os.Getenv("HOME"), os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(home, ".cache")
	}
	paths := []string{os.Getenv("CONTAINERS_REGISTRIES_CONF"), "/var/cache/containers/short-name-aliases.conf", filepath.Join(cache, "containers/short-name-aliases.conf")}
	for _, dir := range []string{"/etc/containers", filepath.Join(home, ".config/containers")} {
		paths = append(paths, filepath.Join(dir, "registries.conf"), filepath.Join(dir, "registries.conf.d"))
		entries, err := os.ReadDir(filepath.Join(dir, "registries.conf.d"))
		if err == nil {
			for _, e := range entries {
				paths = append(paths, filepath.Join(dir, "registries.conf.d", e.Name()))
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
