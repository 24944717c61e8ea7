package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// An OCI artifact is a manifest whose config is not a container image's. Its layers are files for a volume, whatever
// their media types (CRI-O: internal/ociartifact/store.go). Each is stored as a layer of one file. An artifact of Flux has
// a tree of files in its first layer, a tar stream; Flux reads no other (fluxcd/pkg: oci/client_pull.go). The diffIDs are
// known only when the layers have been fetched, so the artifact's config is made then.

// ArtifactType returns the type of an artifact, or "" for a container image and for what is neither.
func ArtifactType(m manifest.Manifest) string {
	oci, ok := m.(*manifest.OCI1)
	if !ok || configTypes[oci.Config.MediaType] {
		return ""
	}
	return cmp.Or(oci.ArtifactType, oci.Config.MediaType)
}

// fileAnnotations name the file of an artifact's layer, as in CRI-O and docker compose: the first that a layer has is used.
var fileAnnotations = []string{v1.AnnotationTitle, "org.cncf.model.filepath", "com.docker.compose.file", "com.docker.compose.envfile"}

// readFiles reads the layers of an artifact. The path of each in a volume must be unique: a layer would hide files of
// the layers below.
func (c *Candidate) readFiles(src source, m manifest.Manifest) error {
	fail := func(err error) error {
		return report.New(report.Failure, "a container image is required, or for an image volume an artifact whose layers have titles, as oras push makes it",
			"it is an OCI artifact of type %q, not a container image, and cannot be mounted either: %w", c.Artifact, err)
	}
	infos := m.LayerInfos()
	switch {
	case len(infos) == 0:
		return fail(fmt.Errorf("it has no layers"))
	case len(infos) > records.MaxLayers:
		return fail(fmt.Errorf("%d layers are more than the %d that can be mounted", len(infos), records.MaxLayers))
	case c.Artifact == api.FluxArtifact:
		tree, err := blobOf(src, infos[0])
		if err == nil && tree.Size > api.MaxArtifact {
			err = fmt.Errorf("read manifest: the artifact has %d bytes, more than %d", tree.Size, api.MaxArtifact)
		}
		c.Layers = []layer.Blob{tree}
		return err
	}
	paths := map[string]bool{} // whether it is a file, not a directory
	for _, info := range infos {
		b, err := blobOf(src, info)
		if err != nil {
			return err
		}
		if b.File, err = filePath(info); err == nil {
			err = addPath(paths, b.File)
		}
		if err != nil {
			return fail(err)
		}
		c.Layers = append(c.Layers, b)
	}
	return nil
}

// filePath returns the path of a layer's file in a volume.
func filePath(info manifest.LayerInfo) (string, error) {
	for _, key := range fileAnnotations {
		name, ok := info.Annotations[key]
		switch {
		case !ok:
			continue
		case !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, unicode.IsControl):
			return "", fmt.Errorf("%s of layer %s is %q, which is not a relative path", key, info.Digest, name)
		case strings.Contains("/"+name, "/.wh."):
			return "", fmt.Errorf("%s of layer %s is %q: names that begin with .wh. delete files of other layers", key, info.Digest, name)
		}
		return name, nil
	}
	return "", fmt.Errorf("layer %s has no annotation %s, so its file has no name", info.Digest, v1.AnnotationTitle)
}

// addPath adds a file's path and its directories to paths.
func addPath(paths map[string]bool, name string) error {
	if _, ok := paths[name]; ok {
		return fmt.Errorf("two layers have files at %q", name)
	}
	paths[name] = true
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if paths[dir] {
			return fmt.Errorf("layers have a file at %q and a file in it, %q", dir, name)
		}
		paths[dir] = false
	}
	return nil
}

// findFiles sets the diffIDs of an artifact's layers if the store has the artifact, so that they are not fetched again.
func (c *Candidate) findFiles(s *records.Store) {
	images, _ := s.Images() // the readable ones
	for _, rec := range images {
		if rec.Digest != digest.FromBytes(c.Manifest) || len(rec.DiffIDs) != len(c.Layers) {
			continue
		}
		for i, id := range rec.DiffIDs {
			c.Layers[i].DiffID = id
		}
		return
	}
}

// artifactConfig makes the config of an artifact, by which the store finds its layers. Equal artifacts have equal
// configs.
func artifactConfig(kind string, stored []*records.Layer) ([]byte, error) {
	config := v1.Image{Config: v1.ImageConfig{Labels: map[string]string{records.ArtifactLabel: kind}}, RootFS: v1.RootFS{Type: "layers"}}
	for _, l := range stored {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.DiffID)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("make config: %w", err)
	}
	return text, nil
}
