package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// dockerImage is one element of a docker archive's manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string // names of tar files, lowest first
}

// dockerImages lists the images of a docker archive. The archive has no digests except the config's, which
// may be in the config's name, and the diffIDs in the config.
func dockerImages(f files, raw []byte) ([]archivedImage, error) {
	var images []dockerImage
	if err := json.Unmarshal(raw, &images); err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("read manifest.json: there is no image in it")
	}
	var list []archivedImage
	for _, img := range images {
		list = append(list, archivedImage{
			names: img.RepoTags,
			fetch: func(context.Context) (*ingest.Candidate, error) { return img.candidate(f) },
		})
	}
	return list, nil
}

func (img dockerImage) candidate(f files) (*ingest.Candidate, error) {
	config, err := readSmall(f, img.Config)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	hex := strings.TrimSuffix(path.Base(img.Config), ".json")
	if called := len(hex) == 64 && records.IsHex(hex); called && digest.FromBytes(config).Encoded() != hex {
		return nil, fmt.Errorf("read config: it does not match its name %s", img.Config)
	}
	diffIDs, err := records.CheckConfig(config)
	if err != nil {
		return nil, err
	}
	if len(img.Layers) != len(diffIDs) {
		return nil, fmt.Errorf("read manifest.json: it has %d layers and the config %d", len(img.Layers), len(diffIDs))
	}
	c := &ingest.Candidate{Config: config}
	for i, name := range img.Layers {
		c.Layers = append(c.Layers, layer.Blob{
			DiffID: diffIDs[i], Size: -1,
			Open: func(context.Context) (io.ReadCloser, error) {
				rc, _, err := f.open(name)
				return rc, err
			},
		})
	}
	return c, nil
}
