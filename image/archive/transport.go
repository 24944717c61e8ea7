package archive

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

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// Load adds the images of a location that is a file or a directory. The images that could be added are returned
// with an error too.
func (s *Archiver) Load(ctx context.Context, p api.Location, onProgress func(api.Progress)) ([]api.Added, error) {
	a, err := s.Begin(ctx, onProgress)
	if err != nil {
		return nil, err
	}
	defer a.End()
	images, err := (&loader{a, s.Checker}).load(ctx, p)
	if err != nil {
		return images, fmt.Errorf("load %s: %w", api.DisplayPath(p.Path), err)
	}
	return images, nil
}

// selectImages returns the images of a list that a location names.
func selectImages(p api.Location, list []archivedImage) ([]archivedImage, error) {
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
			return []archivedImage{item}, nil
		}
		names = append(names, item.names...)
	}
	return nil, report.New(report.Usage, "it has: "+strings.Join(names, ", "), "there is no image %q in it", p.Name)
}

func sameName(a, b string) bool {
	x, err1 := records.ParseName(a)
	y, err2 := records.ParseName(b)
	return a == b || err1 == nil && err2 == nil && x.String() == y.String()
}

// transportOf returns the transport of a file or directory.
func transportOf(f files) (transport string, list []byte, err error) {
	_, isDir := f.(dirFiles)
	list, err = readSmall(f, "index.json")
	if err == nil {
		if isDir {
			return api.OCILayout, list, nil
		}
		return api.OCIArchive, list, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	list, err = readSmall(f, "manifest.json")
	switch {
	case err == nil && isDir && bytes.HasPrefix(bytes.TrimSpace(list), []byte("{")):
		return api.Dir, list, nil
	case err == nil:
		return api.DockerArchive, list, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err
	}
	return "", nil, report.New(report.Usage, "podrun image import FILE NAME makes an image from a root file system",
		"it is not an image: neither index.json (OCI) nor manifest.json (docker) is in it")
}

// dirImages returns the one image of a directory as skopeo copy dir: writes it (containers/image directory):
// manifest.json, and blobs by their hexadecimal digests.
func dirImages(s *records.Store, f files, raw []byte) ([]archivedImage, error) {
	src := &dirSource{f, raw}
	return []archivedImage{{fetch: func(ctx context.Context) (*ingest.Candidate, error) { return ingest.ReadImage(ctx, src, s.ConfigOf) }}}, nil
}

type dirSource struct {
	files files
	top   []byte
}

func (d *dirSource) Manifest(_ context.Context, of digest.Digest) ([]byte, string, error) {
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

func (d *dirSource) Blob(_ context.Context, of digest.Digest, _ int64) (io.ReadCloser, error) {
	rc, _, err := d.files.open(of.Encoded())
	return rc, err
}
