package image

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// archiveSuffixes are the suffixes of files that may be archives.
var archiveSuffixes = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".oci", ".docker"}

// findArchives returns the paths for Load: the path itself or, for a directory that is no OCI layout, the
// archives and layouts in it. So a whole USB stick can be loaded.
func findArchives(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", api.DisplayPath(path), err)
	}
	if !st.IsDir() || isLayout(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	var list []string
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		st, err := os.Stat(file) // it may be a link
		switch {
		case err != nil || strings.HasPrefix(e.Name(), "."):
		case st.IsDir() && isLayout(file), st.Mode().IsRegular() && isArchiveName(e.Name()):
			list = append(list, file)
		}
	}
	if len(list) == 0 {
		return nil, report.New(report.Usage, "podrun image save -o FILE IMAGE writes one", "load %s: there is no archive of images in it: none of its files ends in %s, and none of its directories is an OCI layout", path, strings.Join(archiveSuffixes, ", "))
	}
	return list, nil
}

func isLayout(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, "index.json"))
	if err != nil {
		st, err = os.Stat(filepath.Join(dir, "manifest.json"))
	}
	return err == nil && st.Mode().IsRegular()
}

func isArchiveName(name string) bool {
	name = strings.ToLower(name)
	for _, s := range archiveSuffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}
