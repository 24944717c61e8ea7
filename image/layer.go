package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/store"
)

// layerBlob is a layer as a source has it.
type layerBlob struct {
	DiffID digest.Digest // of the tar stream; "" if it is yet to be found out
	Digest digest.Digest // of the blob; "" if only DiffID is known
	Size   int64         // of the blob; -1 if unknown
	Open   func(ctx context.Context) (io.ReadCloser, error)
	// From opens it in a registry, from an offset on; nil if its source is on this machine.
	From func(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// name is what progress and errors call the layer.
func (b layerBlob) name() string {
	if b.Digest != "" {
		return b.Digest.String()
	}
	return b.DiffID.String()
}

// layer makes sure that a layer is in the store. Of several that want the same one
// at the same time, here or in other processes, one unpacks it.
func (a *adder) layer(ctx context.Context, image string, b layerBlob) (rec *layerRecord, err error) {
	p := Progress{Image: image, Layer: b.name(), Total: b.Size}
	told := func(s Status) { p.Status = s; a.report(p) }
	defer func() {
		if err != nil {
			told(Cancelled)
		}
		if err != nil && ctx.Err() != nil { // whatever it looked like
			err = ctx.Err()
		}
	}()
	if rec, err := soundLayer(a.s.recordStore, b.DiffID); err == nil {
		told(Exists)
		if b.From != nil {
			a.s.dropPartial(b.Digest)
		}
		return rec, nil
	}
	told(Waiting)
	unlock, err := a.lockLayer(ctx, b.DiffID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if rec, err := soundLayer(a.s.recordStore, b.DiffID); err == nil {
		told(Exists)
		return rec, nil
	}
	rec, err = a.bring(ctx, b, func(now Status, n int64) { p.Done = n; told(now) })
	if err != nil {
		return nil, err
	}
	told(Done)
	return rec, nil
}

func (a *adder) lockLayer(ctx context.Context, diffID digest.Digest) (unlock func(), err error) {
	l, err := store.OpenFileLock(filepath.Join(a.s.dir, stagingDir, diffID.Encoded()+".lock"))
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, l.Exclusive); err != nil {
		l.Close()
		return nil, err
	}
	return func() { l.Close() }, nil
}

// stage unpacks a layer into a new directory below staging/. On error nothing is
// left of it.
func (a *adder) stage(ctx context.Context, b layerBlob, told func(n int64)) (string, *layerRecord, error) {
	dir, err := os.MkdirTemp(filepath.Join(a.s.dir, stagingDir), "layer-")
	if err != nil {
		return "", nil, err
	}
	rec, err := a.fill(ctx, dir, b, told)
	if err != nil {
		return "", nil, errors.Join(err, removeTrees([]string{dir}))
	}
	return dir, rec, nil
}

func (a *adder) fill(ctx context.Context, dir string, b layerBlob, told func(n int64)) (*layerRecord, error) {
	root := filepath.Join(dir, layerFS)
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(root, 0o755); err != nil { // it is the container's "/": no umask
		return nil, err
	}
	limits, err := a.s.room(root)
	if err != nil {
		return nil, err
	}
	l, err := unpackLayer(ctx, root, b, unpackJob{limits, a.s.part, a.s.windows, a.lock.File()}, told)
	if err != nil {
		return nil, err
	}
	rec := &layerRecord{
		header: header{recordVersion}, DiffID: l.DiffID, Size: l.Size,
		OpaqueRoot: l.OpaqueRoot, Boot: a.s.boot, Unpacked: l.Unpacked,
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return rec, os.WriteFile(filepath.Join(dir, layerFile), sealed(text), 0o600)
}

// commit makes a staged layer durable and then visible, by one rename.
func (a *adder) commit(staged string, rec *layerRecord) error {
	err := syncFS(staged)
	if err == nil {
		err = a.move(staged, a.s.layerDir(rec.DiffID))
	}
	if err == nil {
		return store.SyncDir(filepath.Join(a.s.dir, layersDir))
	}
	return errors.Join(fmt.Errorf("store: %w", err), removeTrees([]string{staged}))
}

// move puts a staged layer into its place. What is there already is damaged, or it would
// have been used; but pods may run from it, so it stays elsewhere until they have gone.
func (a *adder) move(staged, place string) error {
	err := os.Rename(staged, place)
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	old, err := a.s.retire(filepath.Base(place))
	if err != nil {
		return err
	}
	if err := os.Rename(staged, old); err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE)
	if err != nil {
		return fmt.Errorf("exchange the damaged layer: %w", err)
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
