package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/store"
)

// layer ensures that a layer is in the store. If several goroutines or processes need it at the same time,
// one of them unpacks it.
func (a *Tx) layer(ctx context.Context, image string, b layer.Blob) (rec *records.Layer, err error) {
	p := api.Progress{Image: image, Layer: b.Name(), Total: b.Size}
	onProgress := func(s api.Status) { p.Status = s; a.reportProgress(p) }
	defer func() {
		if err != nil {
			onProgress(api.Cancelled)
		}
		if err != nil && ctx.Err() != nil { // whatever the error is
			err = ctx.Err()
		}
	}()
	if rec := a.stored(b); rec != nil {
		onProgress(api.Exists)
		if b.OpenAt != nil {
			a.Ingester.RemovePartial(b.Digest)
		}
		return rec, nil
	}
	onProgress(api.Waiting)
	unlock, err := a.lockLayer(ctx, cmp.Or(b.DiffID, b.Digest))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if rec := a.stored(b); rec != nil {
		onProgress(api.Exists)
		return rec, nil
	}
	rec, err = a.fetchLayer(ctx, b, func(status api.Status, n int64) { p.Done = n; onProgress(status) })
	if err != nil {
		return nil, err
	}
	onProgress(api.Done)
	return rec, nil
}

// stored returns the record of a layer, or nil if it is not in the store.
func (a *Tx) stored(b layer.Blob) *records.Layer {
	if b.DiffID == "" {
		return nil
	}
	rec, err := integrity.ReadChecked(a.Ingester.Store, b.DiffID)
	if err != nil {
		return nil
	}
	return rec
}

// lockLayer locks a layer by its diffID, or by its blob's digest while the diffID is not known.
func (a *Tx) lockLayer(ctx context.Context, d digest.Digest) (unlock func(), err error) {
	l, err := store.OpenFileLock(filepath.Join(a.Ingester.Dir, records.StagingDir, d.Encoded()+".lock"))
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, l.Exclusive); err != nil {
		l.Close()
		return nil, err
	}
	return func() { l.Close() }, nil
}

// Unpack unpacks a layer into a new directory below staging/. On error it leaves nothing behind.
func (a *Tx) Unpack(ctx context.Context, b layer.Blob, onProgress func(n int64)) (string, *records.Layer, error) {
	dir, err := os.MkdirTemp(filepath.Join(a.Ingester.Dir, records.StagingDir), "layer-")
	if err != nil {
		return "", nil, err
	}
	rec, err := a.unpackInto(ctx, dir, b, onProgress)
	if err != nil {
		return "", nil, errors.Join(err, layer.RemoveTrees([]string{dir}))
	}
	return dir, rec, nil
}

func (a *Tx) unpackInto(ctx context.Context, dir string, b layer.Blob, onProgress func(n int64)) (*records.Layer, error) {
	root := filepath.Join(dir, records.LayerFS)
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(root, 0o755); err != nil { // it is the container's "/": no umask
		return nil, err
	}
	limits, err := a.Ingester.Limits(root)
	if err != nil {
		return nil, err
	}
	l, err := layer.Unpack(ctx, root, b, layer.UnpackOptions{Limits: limits, Part: a.Ingester.Part, Windows: a.Ingester.windows, Lock: a.lock.File()}, onProgress)
	if err != nil {
		return nil, err
	}
	rec := &records.Layer{
		Header: records.Header{Version: records.RecordVersion}, DiffID: l.DiffID, Size: l.Size,
		OpaqueRoot: l.OpaqueRoot, Boot: a.Ingester.Boot, LayerStats: l.LayerStats,
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return rec, os.WriteFile(filepath.Join(dir, records.LayerFile), records.WithChecksum(text), 0o600)
}

// commit makes a staged layer durable and then visible, by one rename.
func (a *Tx) commit(staged string, rec *records.Layer) error {
	err := syncFS(staged)
	if err == nil {
		err = a.replaceLayer(staged, a.Ingester.LayerDir(rec.DiffID))
	}
	if err == nil {
		return store.SyncDir(filepath.Join(a.Ingester.Dir, records.LayersDir))
	}
	return errors.Join(fmt.Errorf("store: %w", err), layer.RemoveTrees([]string{staged}))
}

// replaceLayer renames a staged layer to its final path. An existing layer there is damaged, otherwise it
// would have been used. Pods may run from it, so it is kept elsewhere until they have gone.
func (a *Tx) replaceLayer(staged, path string) error {
	err := os.Rename(staged, path)
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	retired, err := a.Ingester.NewRetiredDir(filepath.Base(path))
	if err != nil {
		return err
	}
	if err := os.Rename(staged, retired); err != nil { // the new layer, until the exchange
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, retired, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	if err != nil {
		return fmt.Errorf("replace the damaged layer: %w", err)
	}
	return nil
}

// syncFS makes everything in dir's file system durable.
func syncFS(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync file system of %s: %w", dir, err)
	}
	return nil
}

// fetchLayer unpacks a layer and makes it durable. A layer from a registry is fetched at the same time. It
// is fetched again from the beginning if the part from an earlier pull turns out to be wrong.
func (a *Tx) fetchLayer(ctx context.Context, b layer.Blob, onProgress func(api.Status, int64)) (*records.Layer, error) {
	if b.OpenAt == nil {
		return a.unpackAndCommit(ctx, b, onProgress)
	}
	for {
		d := a.Ingester.StartDownload(ctx, b)
		b.Open = d.Open
		rec, err := a.unpackAndCommit(ctx, b, onProgress)
		d.Close()
		ferr := d.Finish(err)
		if err != nil && d.ShouldRestart(err) && ctx.Err() == nil {
			continue // its partial file is gone: this does not happen twice
		}
		return rec, errors.Join(err, ferr)
	}
}

// CommitOnce stores a staged layer unless it is in the store already.
func (a *Tx) CommitOnce(ctx context.Context, staged string, rec *records.Layer) error {
	unlock, err := a.lockLayer(ctx, rec.DiffID)
	if err != nil {
		return errors.Join(err, layer.RemoveTrees([]string{staged}))
	}
	defer unlock()
	if _, err := a.Ingester.ReadLayer(rec.DiffID); err == nil {
		return layer.RemoveTrees([]string{staged})
	}
	return a.commit(staged, rec)
}

func (a *Tx) unpackAndCommit(ctx context.Context, b layer.Blob, onProgress func(api.Status, int64)) (*records.Layer, error) {
	if err := a.Ingester.unpacks.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	last := int64(0)
	staged, rec, err := a.Unpack(ctx, b, func(n int64) { last = n; onProgress(api.Fetching, n) })
	a.Ingester.unpacks.Release(1)
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", b.Name(), err)
	}
	onProgress(api.Storing, last)
	commit := a.commit
	if b.DiffID == "" { // rec's is not locked
		commit = func(staged string, rec *records.Layer) error { return a.CommitOnce(ctx, staged, rec) }
	}
	if err := commit(staged, rec); err != nil {
		return nil, fmt.Errorf("layer %s: %w", b.Name(), err)
	}
	return rec, nil
}
