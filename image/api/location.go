package api

import (
	"strings"

	"github.com/podrun/podrun/internal/report"
)

// The formats of Save, with podman's names.
const (
	OCIArchive    = "oci-archive"
	OCIDir        = "oci-dir"
	DockerArchive = "docker-archive"
)

// The transports of containers-transports(5) for files and directories. A policy uses the same names.
const (
	OCILayout = "oci"
	Dir       = "dir"
	RootTar   = "tarball" // a root file system: only Import accepts it
)

// Location is where an image is: a registry and a name, or a file or directory.
type Location struct {
	Transport string // "docker", or a transport for files; "": detected from the file
	Path      string // the file or directory; of "docker" the name
	Name      string // selects an image in there, by name or by "@" and a number from 0; "": all
}

// ParseLocation parses TRANSPORT:PATH[:NAME] as skopeo and podman do (docker://NAME, oci:DIR, oci-archive:FILE,
// docker-archive:FILE, dir:DIR). A word without a transport is a name.
func ParseLocation(word string) (Location, error) {
	transport, rest, ok := strings.Cut(word, ":")
	if !ok {
		return Location{Transport: "docker", Path: word}, nil
	}
	switch transport {
	case "docker":
		if name, ok := strings.CutPrefix(rest, "//"); ok {
			return Location{Transport: transport, Path: name}, nil
		}
	case Dir:
		return Location{Transport: transport, Path: rest}, nil
	case OCILayout, OCIArchive, DockerArchive:
		path, name, _ := strings.Cut(rest, ":")
		return Location{transport, path, name}, nil
	case "containers-storage", "docker-daemon", "sif", "ostree", "tarball", "atomic":
		return Location{}, report.New(report.Usage, "save it to a file there, and podrun image load FILE here",
			"%s: images cannot be pulled from %s", word, transport)
	}
	return Location{Transport: "docker", Path: word}, nil
}

// DisplayPath returns the path of an archive for messages.
func DisplayPath(path string) string {
	if path == "/dev/stdin" {
		return "standard input"
	}
	return path
}
