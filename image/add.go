package image

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
)

// parallelLayers is how many layers of one image are on their way at once: each has a
// connection. How many are unpacked is another matter: see means.
const parallelLayers = 6

// add brings an image's layers into the store, then records the image, then gives
// it its names (normalised references; there may be none).
func (a *adder) add(ctx context.Context, c *candidate, asked string, names []string) (added, error) {
	records, err := a.layers(ctx, c.layers, asked)
	if err != nil {
		return added{}, err
	}
	if c.manifest == nil {
		if err := c.makeManifest(records); err != nil {
			return added{}, err
		}
	}
	rec := &imageRecord{
		header: header{recordVersion},
		ID:     digest.FromBytes(c.config), Config: string(c.config),
		Digest: digest.FromBytes(c.manifest), Manifest: string(c.manifest), MediaType: c.mediaType,
		Added: time.Now().UTC(), Pulled: c.pulled, Index: string(c.index),
	}
	for _, l := range c.layers {
		rec.DiffIDs = append(rec.DiffIDs, l.DiffID)
	}
	if err := a.s.record(rec, c, names); err != nil {
		return added{}, err
	}
	return added{rec.ID, append(names, "")[0]}, nil
}

// added is an image that has been added.
type added struct {
	id   digest.Digest
	name string // the first of those it was given; "" if none
}

// layers brings layers into the store, several at a time. The first failure ends
// the others; layers that are done stay and are not fetched again.
func (a *adder) layers(ctx context.Context, blobs []layerBlob, asked string) (map[digest.Digest]*layerRecord, error) {
	var jobs []layerBlob
	for _, b := range blobs { // a layer may be there twice
		if !slices.ContainsFunc(jobs, func(j layerBlob) bool { return j.DiffID == b.DiffID }) {
			jobs = append(jobs, b)
		}
	}
	records := make([]*layerRecord, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLayers)
	for i, b := range jobs {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			records[i], err = a.layer(ctx, asked, b)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	byID := map[digest.Digest]*layerRecord{}
	for i, b := range jobs {
		byID[b.DiffID] = records[i]
	}
	return byID, nil
}

// makeManifest describes an image whose source had no manifest: its layers are the
// plain tar streams.
func (c *candidate) makeManifest(records map[digest.Digest]*layerRecord) error {
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromBytes(c.config), Size: int64(len(c.config))},
	}
	for _, l := range c.layers {
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: l.DiffID, Size: records[l.DiffID].Size})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("make manifest: %w", err)
	}
	c.manifest, c.mediaType, c.top = raw, m.MediaType, digest.FromBytes(raw)
	return nil
}

// record writes an image's record and its names. Both are short; nobody removes
// records meanwhile.
func (s *ingestStore) record(rec *imageRecord, c *candidate, names []string) error {
	lock, err := s.lockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	old, err := s.readImage(rec.ID)
	isNew := err != nil
	if isNew || old.Digest != rec.Digest || old.Pulled != rec.Pulled || rec.Index != "" && old.Index != rec.Index {
		if err := writeRecord(s.imageFile(rec.ID), rec); err != nil {
			return fmt.Errorf("record image %s: %w", rec.ID, err)
		}
	}
	for i, name := range names {
		want := nameRecord{header{recordVersion}, name, rec.ID, rec.Digest, c.top, string(c.index), fromMachine}
		if c.pulled {
			want.Origin = fromRegistry
		}
		if old, err := s.readName(name); err == nil && *old == want {
			continue
		}
		if err := writeRecord(s.nameFile(name), want); err != nil {
			if isNew && i == 0 { // a full disk: nobody is to wonder what it is
				os.Remove(s.imageFile(rec.ID))
			}
			return fmt.Errorf("record name %s: %w", name, err)
		}
	}
	return nil
}
