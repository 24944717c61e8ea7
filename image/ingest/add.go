package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// parallelLayers is how many layers of one image are fetched at once; each has a connection. See
// parallelUnpacks for how many are unpacked at once.
const parallelLayers = 6

// Add adds an image's layers to the store, then records the image, then its names (normalised references;
// there may be none).
func (a *Tx) Add(ctx context.Context, c *Candidate, requested string, names []string) (api.Added, error) {
	if c.Artifact != "" {
		c.findFiles(a.Ingester.Store)
	}
	stored, err := a.layers(ctx, c.Layers, requested)
	if err != nil {
		return api.Added{}, err
	}
	if c.Artifact != "" {
		c.Config, err = artifactConfig(c.Artifact, stored)
	} else if c.Manifest == nil {
		err = c.makeManifest(stored)
	}
	if err != nil {
		return api.Added{}, err
	}
	rec := &records.Image{
		Header: records.Header{Version: records.RecordVersion},
		ID:     digest.FromBytes(c.Config), Config: string(c.Config),
		Digest: digest.FromBytes(c.Manifest), Manifest: string(c.Manifest), MediaType: c.MediaType,
		Added: time.Now().UTC(), Pulled: c.Pulled, Index: string(c.Index),
	}
	for _, l := range stored {
		rec.DiffIDs = append(rec.DiffIDs, l.DiffID)
	}
	if err := a.Ingester.record(rec, c, names); err != nil {
		return api.Added{}, err
	}
	return api.Added{ID: rec.ID, Name: append(names, "")[0]}, nil
}

// layers adds layers to the store, several at a time. The first failure cancels the others; finished layers
// stay and are not fetched again.
func (a *Tx) layers(ctx context.Context, blobs []layer.Blob, requested string) ([]*records.Layer, error) {
	stored := make([]*records.Layer, len(blobs))
	first := func(b layer.Blob) int { // a layer may occur twice
		return slices.IndexFunc(blobs, func(other layer.Blob) bool { return other.DiffID == b.DiffID })
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallelLayers)
	for i, b := range blobs {
		if b.DiffID != "" && first(b) != i {
			continue
		}
		group.Go(func() (err error) {
			if err := within.Err(); err != nil {
				return err
			}
			stored[i], err = a.layer(within, requested, b)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, b := range blobs {
		if stored[i] == nil {
			stored[i] = stored[first(b)]
		}
	}
	return stored, nil
}

// makeManifest makes a manifest for an image whose source has none: its layers are the plain tar streams.
func (c *Candidate) makeManifest(stored []*records.Layer) error {
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromBytes(c.Config), Size: int64(len(c.Config))},
	}
	for _, l := range stored {
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: l.DiffID, Size: l.Size})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("make manifest: %w", err)
	}
	c.Manifest, c.MediaType, c.Top = raw, m.MediaType, digest.FromBytes(raw)
	return nil
}

// record writes an image's record and its names. No other process removes records in between.
func (s *Ingester) record(rec *records.Image, c *Candidate, names []string) error {
	lock, err := s.LockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	old, err := s.ReadImage(rec.ID)
	isNew := err != nil
	if isNew || old.Digest != rec.Digest || old.Pulled != rec.Pulled || rec.Index != "" && old.Index != rec.Index {
		if err := records.WriteRecord(s.ImageFile(rec.ID), rec); err != nil {
			return fmt.Errorf("record image %s: %w", rec.ID, err)
		}
	}
	for i, name := range names {
		want := records.Name{Header: records.Header{Version: records.RecordVersion}, Name: name, ID: rec.ID, Digest: rec.Digest, Top: c.Top, Index: string(c.Index), Origin: records.OriginLocal}
		if c.Pulled {
			want.Origin = records.OriginRegistry
		}
		if old, err := s.ReadName(name); err == nil && *old == want {
			continue
		}
		if err := records.WriteRecord(s.NameFile(name), want); err != nil {
			if isNew && i == 0 { // the disk is full: do not leave an image without a name
				os.Remove(s.ImageFile(rec.ID))
			}
			return fmt.Errorf("record name %s: %w", name, err)
		}
	}
	return nil
}
