package image

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
)

// dockerImage is one element of a docker archive's manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string // names of tar files, lowest first
}

// dockerImages lists the images of a docker archive. It has no digests but the
// config's, which the config's name may carry, and the diffIDs in the config.
func dockerImages(f files, raw []byte) ([]archived, error) {
	var images []dockerImage
	if err := json.Unmarshal(raw, &images); err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("read manifest.json: there is no image in it")
	}
	var list []archived
	for _, img := range images {
		list = append(list, archived{
			names: img.RepoTags,
			fetch: func(context.Context) (*candidate, error) { return img.candidate(f) },
		})
	}
	return list, nil
}

func (img dockerImage) candidate(f files) (*candidate, error) {
	config, err := readSmall(f, img.Config)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	hex := strings.TrimSuffix(path.Base(img.Config), ".json")
	if called := len(hex) == 64 && isHex(hex); called && digest.FromBytes(config).Encoded() != hex {
		return nil, fmt.Errorf("read config: it is not what its name %s says", img.Config)
	}
	diffIDs, err := readDiffIDs(config)
	if err != nil {
		return nil, err
	}
	if len(img.Layers) != len(diffIDs) {
		return nil, fmt.Errorf("read manifest.json: it has %d layers and the config %d", len(img.Layers), len(diffIDs))
	}
	c := &candidate{config: config}
	for i, name := range img.Layers {
		c.layers = append(c.layers, layerBlob{
			DiffID: diffIDs[i], Size: -1,
			Open: func(context.Context) (io.ReadCloser, error) {
				rc, _, err := f.open(name)
				return rc, err
			},
		})
	}
	return c, nil
}
