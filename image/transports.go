package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// The transports of containers-transports(5) for files and directories. Each is the name
// of what a policy has to say of it, too.
const (
	ociLayout = "oci"
	plainDir  = "dir"
	rootTar   = "tarball" // a root file system: only Import takes it
)

// Place is where an image is: in a registry under a name, or in a file or directory.
type Place struct {
	Transport string // "docker", or one of those for files; "": of whatever kind the file is
	Path      string // the file or directory; of "docker" the name
	Name      string // which of the images in there, by name or "@" and a number from 0; "": all
}

// ParsePlace reads TRANSPORT:PATH[:NAME] as skopeo and podman do (docker://NAME, oci:DIR,
// oci-archive:FILE, docker-archive:FILE, dir:DIR). What has no transport is a name.
func ParsePlace(word string) (Place, error) {
	transport, rest, ok := strings.Cut(word, ":")
	if !ok {
		return Place{Transport: "docker", Path: word}, nil
	}
	switch transport {
	case "docker":
		if name, ok := strings.CutPrefix(rest, "//"); ok {
			return Place{Transport: transport, Path: name}, nil
		}
	case plainDir:
		return Place{Transport: transport, Path: rest}, nil
	case ociLayout, OCIArchive, DockerArchive:
		path, name, _ := strings.Cut(rest, ":")
		return Place{transport, path, name}, nil
	case "containers-storage", "docker-daemon", "sif", "ostree", "tarball", "atomic":
		return Place{}, report.New(report.Usage, "save it to a file there, and podrun image load FILE here",
			"%s: images are not had from %s", word, transport)
	}
	return Place{Transport: "docker", Path: word}, nil
}

// load adds the images of a place that is a file or a directory. Those that could be added
// are returned with an error too.
func (s *archives) load(ctx context.Context, p Place, tell func(Progress)) ([]added, error) {
	a, err := s.begin(ctx, tell)
	if err != nil {
		return nil, err
	}
	defer a.end()
	images, err := (&loader{a, s.policyChecker}).load(ctx, p)
	if err != nil {
		return images, fmt.Errorf("load %s: %w", shown(p.Path), err)
	}
	return images, nil
}

// picked are the images of a list that a place names.
func (p Place) picked(list []archived) ([]archived, error) {
	if p.Name == "" {
		return list, nil
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(p.Name, "@")); err == nil && strings.HasPrefix(p.Name, "@") {
		if n < 0 || n >= len(list) {
			return nil, fmt.Errorf("there is no image number %d among its %d", n, len(list))
		}
		return list[n : n+1], nil
	}
	var names []string
	for _, item := range list {
		if slices.ContainsFunc(item.names, func(n string) bool { return sameName(n, p.Name) }) {
			return []archived{item}, nil
		}
		names = append(names, item.names...)
	}
	return nil, report.New(report.Usage, "it has: "+strings.Join(names, ", "), "there is no image %q in it", p.Name)
}

func sameName(a, b string) bool {
	x, err1 := parseName(a)
	y, err2 := parseName(b)
	return a == b || err1 == nil && err2 == nil && x.String() == y.String()
}

// transportOf tells of which kind the images of a file or directory are.
func transportOf(f files) (transport string, list []byte, err error) {
	_, isDir := f.(dirFiles)
	list, err = readSmall(f, "index.json")
	if err == nil {
		if isDir {
			return ociLayout, list, nil
		}
		return OCIArchive, list, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	list, err = readSmall(f, "manifest.json")
	switch {
	case err == nil && isDir && bytes.HasPrefix(bytes.TrimSpace(list), []byte("{")):
		return plainDir, list, nil
	case err == nil:
		return DockerArchive, list, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err
	}
	return "", nil, report.New(report.Usage, "podrun image import FILE NAME makes an image from a root file system",
		"it is not an image: neither index.json (OCI) nor manifest.json (docker) is in it")
}

// dirImages are the one image of a directory as skopeo copy dir: writes it
// (containers/image directory): manifest.json, and blobs by their hexadecimal digests.
func dirImages(s *recordStore, f files, raw []byte) ([]archived, error) {
	src := &dirSource{f, raw}
	return []archived{{fetch: func(ctx context.Context) (*candidate, error) { return fetch(ctx, src, s.knownConfig) }}}, nil
}

type dirSource struct {
	files files
	top   []byte
}

func (d *dirSource) manifest(_ context.Context, of digest.Digest) ([]byte, string, error) {
	raw := d.top
	if of != "" {
		var err error
		if raw, err = readSmall(d.files, of.Encoded()+".manifest.json"); err != nil {
			return nil, "", fmt.Errorf("read manifest: %w", err)
		}
	}
	var m struct {
		MediaType string `json:"mediaType"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, "", fmt.Errorf("read manifest: %w", err)
	}
	return raw, m.MediaType, nil
}

func (d *dirSource) blob(_ context.Context, of digest.Digest, _ int64) (io.ReadCloser, error) {
	rc, _, err := d.files.open(of.Encoded())
	return rc, err
}
