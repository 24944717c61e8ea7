package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// files is the set of named files of an archive or a layout. A missing name gives fs.ErrNotExist.
type files interface {
	open(name string) (io.ReadCloser, int64, error)
	Close() error
}

// openFiles opens a directory or a tar file, plain or compressed. A compressed one is first decompressed
// into an unnamed file of the store, because its parts are needed in another order.
func (a *loader) openFiles(ctx context.Context, path string) (files, error) {
	f, err := openInput(ctx, path, writerTime)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if st.IsDir() {
		f.Close()
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, err
		}
		return dirFiles{root}, nil
	}
	if !st.Mode().IsRegular() || compressed(f) {
		plain, err := a.spool(ctx, f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		f = plain
	}
	t, err := indexTar(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// writerTime is how long a FIFO may have no writer.
const writerTime = time.Minute

// openInput opens a file that may be a pipe, and waits for the first data. A FIFO must have it within wait, because it may
// have no writer for ever; a pipe has one. Later reads wait until ctx ends.
func openInput(ctx context.Context, path string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // otherwise open waits for a FIFO's writer
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) }) // a regular file never waits and has no deadline
	st, err := f.Stat()
	if err == nil && st.Mode()&fs.ModeNamedPipe != 0 {
		err = awaitFirst(f, wait)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// awaitFirst waits for the first data of a pipe, in the case of a FIFO for a limited time.
func awaitFirst(f *os.File, wait time.Duration) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	var statErr error
	if err := errors.Join(raw.Control(func(fd uintptr) { statErr = unix.Fstatfs(int(fd), &fs) }), statErr); err != nil {
		return err
	}
	if fs.Type == unix.PIPEFS_MAGIC {
		return awaitWriter(f)
	}
	timer := time.AfterFunc(wait, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	err = awaitWriter(f)
	if !timer.Stop() {
		return report.New(report.Failure, "name a file, or write to standard input and name /dev/stdin", "no process has written to the FIFO for %v", wait)
	}
	return err
}

// awaitWriter waits until a pipe can be read: without a writer, a read would return end of file.
func awaitWriter(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var perr error
	err = raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n := 0
		for n, perr = unix.Poll(p, 0); errors.Is(perr, unix.EINTR); {
			n, perr = unix.Poll(p, 0)
		}
		return n > 0 || perr != nil
	})
	return errors.Join(err, perr)
}

func compressed(f *os.File) bool {
	r, err := layer.Decompress(io.NewSectionReader(f, 0, 64))
	if err != nil {
		return true // spool reports this kind
	}
	defer r.Close()
	_, plain := r.(layer.Uncompressed)
	return !plain
}

// spool copies f, decompressed, to an unnamed file.
func (a *loader) spool(ctx context.Context, f *os.File) (*os.File, error) {
	dir := filepath.Join(a.Ingester.Dir, records.StagingDir)
	limits, err := a.Ingester.Limits(dir)
	if err != nil {
		return nil, err
	}
	plain, err := layer.Decompress(f)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	tmp, err := os.CreateTemp(dir, "archive-")
	if err != nil {
		return nil, err
	}
	os.Remove(tmp.Name())
	n, err := io.Copy(tmp, io.LimitReader(ctxReader{ctx, plain}, limits.Bytes+1))
	if err == nil && n > limits.Bytes {
		err = layer.TooLargeError(limits)
	}
	if err == nil {
		_, err = tmp.Seek(0, io.SeekStart)
	}
	if err != nil {
		tmp.Close()
		return nil, err
	}
	return tmp, nil
}

// ctxReader fails when its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// dirFiles is a directory's files. It never leaves the directory, whatever links are in it.
type dirFiles struct{ root *os.Root }

func (d dirFiles) Close() error { return d.root.Close() }

func (d dirFiles) open(name string) (io.ReadCloser, int64, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // open must not wait for a FIFO
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// tarFiles is the set of files of a seekable tar file.
type tarFiles struct {
	f     *os.File
	index map[string]tarEntry
}

type tarEntry struct {
	offset, size int64
	link         string // of symbolic and hard links: a name in the index
}

// maxArchiveEntries bounds the entries of an archive. Archives have three files per layer.
const maxArchiveEntries = 100_000

func indexTar(f *os.File) (*tarFiles, error) {
	t := &tarFiles{f, map[string]tarEntry{}}
	entries := 0
	for r := tar.NewReader(f); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read archive: %w", layer.DescribeTarError(err, entries))
		}
		entries++
		if len(t.index) == maxArchiveEntries {
			return nil, fmt.Errorf("read archive: more than %d files", maxArchiveEntries)
		}
		name := layer.CleanName(hdr.Name)
		switch hdr.Typeflag {
		case tar.TypeReg:
			offset, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, fmt.Errorf("read archive: %w", err)
			}
			t.index[name] = tarEntry{offset: offset, size: hdr.Size}
		case tar.TypeSymlink: // written by old versions of docker save
			t.index[name] = tarEntry{link: layer.CleanName(path.Join(path.Dir(name), hdr.Linkname))}
		case tar.TypeLink:
			t.index[name] = tarEntry{link: layer.CleanName(hdr.Linkname)}
		}
	}
}

func (t *tarFiles) Close() error { return t.f.Close() }

func (t *tarFiles) open(name string) (io.ReadCloser, int64, error) {
	e, ok := t.index[layer.CleanName(name)]
	for hops := 0; ok && e.link != "" && hops < 8; hops++ {
		e, ok = t.index[e.link]
	}
	if !ok || e.link != "" {
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(io.NewSectionReader(t.f, e.offset, e.size)), e.size, nil
}

// readSmall reads a whole JSON file.
func readSmall(f files, name string) ([]byte, error) {
	rc, size, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if size > ingest.MaxJSON {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, ingest.MaxJSON)
	}
	text, err := io.ReadAll(ingest.LimitDocument(rc))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}
