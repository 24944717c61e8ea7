package image

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/semaphore"
)

// What one process does at once, whatever images it adds: memory is what bounds it. A pull
// is to get by with 64 MiB, of which each unpacker takes 14 and the program itself 15.
const (
	parallelUnpacks = 2
	windowsMemory   = 16 << 20 // bytes of zstd's windows; one that is larger is alone
)

// Memory is what Go may have in a process that adds images, in bytes: for
// debug.SetMemoryLimit. Without a limit the collector would let twice as much pile up.
const Memory = 24 << 20

// ingestStore is a store with what all images that a process adds share.
type ingestStore struct {
	*recordStore
	downloads
	unpacks *semaphore.Weighted
	windows *semaphore.Weighted
	part    int // entries that an unpacker deals with at once
}

// newIngestStore is a store to add to. passing says whether an error of a registry may be gone
// in a moment.
func newIngestStore(s *recordStore, passing func(error) bool) *ingestStore {
	return &ingestStore{
		recordStore: s,
		downloads:   downloads{partials: filepath.Join(s.dir, partialDir), room: roomFor, patience: usualPatience(), passing: passing},
		unpacks:     semaphore.NewWeighted(parallelUnpacks), windows: semaphore.NewWeighted(windowsMemory), part: usualPart,
	}
}

// bring unpacks a layer and makes it durable. From a registry it is fetched at the same
// time; if what an earlier pull has left of it turns out to be wrong, anew.
func (a *adder) bring(ctx context.Context, b layerBlob, told func(Status, int64)) (*layerRecord, error) {
	if b.From == nil {
		return a.unpackAndCommit(ctx, b, told)
	}
	for {
		d := a.s.startDownload(ctx, b)
		b.Open = d.open
		rec, err := a.unpackAndCommit(ctx, b, told)
		d.Close()
		ferr := d.finish(err)
		if err != nil && d.resumedWrong(err) && ctx.Err() == nil {
			continue // its partial file is gone: it will not happen twice
		}
		return rec, errors.Join(err, ferr)
	}
}

func (a *adder) unpackAndCommit(ctx context.Context, b layerBlob, told func(Status, int64)) (*layerRecord, error) {
	if err := a.s.unpacks.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	last := int64(0)
	staged, rec, err := a.stage(ctx, b, func(n int64) { last = n; told(Fetching, n) })
	a.s.unpacks.Release(1)
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", b.name(), err)
	}
	told(Storing, last)
	if err := a.commit(staged, rec); err != nil {
		return nil, fmt.Errorf("layer %s: %w", b.name(), err)
	}
	return rec, nil
}
