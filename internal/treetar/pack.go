package treetar

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the nesting of directories: each takes a descriptor.
const maxDepth = 200

// Pack writes a path with everything below it to out, under the name as. It follows a link at the
// path itself; links below are links in the stream. It leaves out anything that is no file,
// directory or link, and reports it to skipped.
func (r *Root) Pack(ctx context.Context, out io.Writer, name, as string, skipped func(string)) error {
	fd, err := r.openPath(name, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	p := &packer{root: r, ctx: ctx, out: tar.NewWriter(out), skipped: skipped}
	if err := p.add(fd, as, 0); err != nil {
		return err
	}
	return p.out.Close()
}

// Whiteout begins the name of an entry that stands for a removed file (OCI image specification: layer.md).
const Whiteout = ".wh."

// PackChanges writes a difference to out: the paths names, each without what is below it, and whiteouts for the removed
// paths. as returns the name of a path in the stream. A path that is gone meanwhile is left out.
func (r *Root) PackChanges(ctx context.Context, out io.Writer, names, removed []string, as func(string) string, skipped func(string)) error {
	p := &packer{root: r, ctx: ctx, out: tar.NewWriter(out), skipped: skipped, flat: true}
	for _, name := range removed {
		dir, base := path.Split(as(name))
		if err := p.header(&tar.Header{Name: dir + Whiteout + base, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
	}
	for _, name := range names {
		fd, err := r.openPath(name, unix.O_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		err = p.add(fd, as(name), 0)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return p.out.Close()
}

type packer struct {
	root    *Root
	ctx     context.Context
	out     *tar.Writer
	skipped func(string)
	flat    bool // nothing below a directory
}

// add writes the object of a descriptor.
func (p *packer) add(fd int, as string, depth int) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: as, Err: err}
	}
	h := &tar.Header{
		Name: as, Mode: int64(st.Mode & 0o7777), Uid: p.root.toStreamID(st.Uid), Gid: p.root.toStreamID(st.Gid),
		ModTime: time.Unix(int64(st.Mtim.Sec), int64(st.Mtim.Nsec)).Round(time.Second),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, as+"/"
		if err := p.header(h); err != nil || p.flat {
			return err
		}
		return p.directory(fd, as, depth)
	case unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", buf)
		if err != nil {
			return &os.PathError{Op: "read link", Path: as, Err: err}
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(buf[:n])
		return p.header(h)
	case unix.S_IFREG:
		h.Typeflag, h.Size = tar.TypeReg, st.Size
		return p.file(fd, h)
	}
	p.skipped(as + ": neither a file nor a directory nor a link")
	return nil
}

func (p *packer) header(h *tar.Header) error {
	if err := p.out.WriteHeader(h); err != nil {
		return fmt.Errorf("write %s: %w", h.Name, err)
	}
	return nil
}

// file writes a file with the size in its header.
func (p *packer) file(fd int, h *tar.Header) error {
	f, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return &os.PathError{Op: "open", Path: h.Name, Err: err}
	}
	defer f.Close()
	if err := p.header(h); err != nil {
		return err
	}
	n, err := io.Copy(p.out, &ctxReader{p.ctx, io.LimitReader(f, h.Size)})
	if err != nil {
		return fmt.Errorf("copy %s: %w", h.Name, err)
	}
	if n < h.Size {
		p.skipped(fmt.Sprintf("%s: it has become shorter meanwhile: the end is zeros", h.Name))
		_, err = io.CopyN(p.out, zeros{}, h.Size-n)
	}
	return err
}

func (p *packer) directory(fd int, as string, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("%s: directories are more than %d deep", as, maxDepth)
	}
	dir, err := reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return &os.PathError{Op: "open", Path: as, Err: err}
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("list %s: %w", as, err)
	}
	slices.Sort(names)
	for _, name := range names {
		child, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: path.Join(as, name), Err: err}
		}
		err = p.add(child, as+"/"+name, depth+1)
		unix.Close(child)
		if err != nil {
			return err
		}
	}
	return nil
}

// reopen opens the object of a path descriptor, whatever the path leads to by now.
func reopen(fd, flags int) (*os.File, error) {
	n, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), "file"), nil
}

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx context.Context
	in  io.Reader
}

func (u *ctxReader) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.in.Read(b)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
