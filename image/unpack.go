package image

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/containerd/containerd/v2/pkg/archive"
	"golang.org/x/sys/unix"
)

// The stages of this room.
const (
	unpackStage = "_unpack"
	removeStage = "_rmlayers"
)

// Stages are the hidden stages of this room, for main to register.
func Stages() map[string]func(args []string) int {
	return map[string]func(args []string) int{unpackStage: unpackMain, removeStage: removeMain, rebuildStage: rebuildMain}
}

// unpackOrder is what the parent asks for, as JSON in the one argument. The tar
// stream is on standard input.
type unpackOrder struct {
	Dir    string // absolute; filled with the layer
	Limits limits
	Part   int // entries that are given to Apply at once
}

// recipeFD is where the child writes the layer's recipe; the descriptor before it is the
// store's lock.
const recipeFD = 4

// unpackResult is what the child answers on standard output. Errors go to standard
// error as one line.
type unpackResult struct {
	Unpacked
	OpaqueRoot bool
}

func unpackMain(args []string) int {
	result, err := unpack(args)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func unpack(args []string) (*unpackResult, error) {
	var order unpackOrder
	if len(args) != 1 {
		return nil, fmt.Errorf("%s: no order", unpackStage)
	}
	if err := json.Unmarshal([]byte(args[0]), &order); err != nil {
		return nil, fmt.Errorf("%s: %w", unpackStage, err)
	}
	debug.SetGCPercent(50) // of a part Apply remembers every path: 140 bytes a file, 400 a directory
	f := &filter{limits: order.Limits}
	var err error
	if f.uids, err = readIDMap("/proc/self/uid_map"); err != nil {
		return nil, err
	}
	if f.gids, err = readIDMap("/proc/self/gid_map"); err != nil {
		return nil, err
	}
	unix.Umask(0)
	if err := confine(order.Dir, order.Limits.Bytes, 0); err != nil {
		return nil, err
	}
	rec := newRecorder(bufio.NewReaderSize(os.Stdin, 256<<10), os.NewFile(recipeFD, recipeFile))
	result, err := apply(rec, f, order.Part)
	if err == nil {
		err = rec.close()
	}
	if err != nil {
		return nil, tarError(err, f.count.Entries)
	}
	return result, nil
}

// apply fills the root directory. The rest of the stream is read too: its writer
// hashes it to the end.
func apply(r *recorder, f *filter, part int) (*unpackResult, error) {
	w := whiteouts{deleted: map[string]bool{}, opaque: map[string]bool{}}
	p := &parts{r: r, most: part}
	entry := func(hdr *tar.Header) (bool, error) {
		r.entry(hdr)
		p.entry(hdr)
		return f.entry(hdr)
	}
	for p.next() {
		if _, err := archive.Apply(context.Background(), "/", p, archive.WithFilter(entry), archive.WithConvertWhiteout(w.convert)); err != nil {
			return nil, err
		}
	}
	if err := p.times(); err != nil {
		return nil, err
	}
	opaqueRoot, err := w.apply()
	if err != nil {
		return nil, err
	}
	if f.root != nil { // Apply leaves it out
		if err := os.Lchown("/", f.root.Uid, f.root.Gid); err != nil {
			return nil, err
		}
		if err := os.Chmod("/", f.root.FileInfo().Mode()); err != nil {
			return nil, err
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return &unpackResult{f.count, opaqueRoot}, nil
}

func readIDMap(path string) (idMap, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read id map: %w", err)
	}
	return parseIDMap(string(b))
}

// removeMain removes the directories named by its arguments. Their files belong to
// ids that only the user namespace has.
func removeMain(args []string) int {
	code := 0
	for _, dir := range args {
		if !filepath.IsAbs(dir) {
			fmt.Fprintf(os.Stderr, "remove %s: not an absolute path\n", dir)
			return 2
		}
		if err := removeTree(unix.AT_FDCWD, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// removeTree is os.RemoveAll with fewer system calls: one for an empty directory in the place of
// seven, of which a hostile layer may have many.
func removeTree(parent int, name string) error {
	err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		if err := removeEntries(dir); err != nil {
			return err
		}
		err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return err
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil { // a file system may have left some out while others went
			return err
		}
	}
}

// removeEntries removes what it can of a directory's entries.
func removeEntries(dir *os.File) (first error) {
	failed := func(err error) {
		if first == nil {
			first = err
		}
	}
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			if e.IsDir() {
				if err := removeTree(int(dir.Fd()), e.Name()); err != nil {
					failed(err)
				}
			} else if err := unix.Unlinkat(int(dir.Fd()), e.Name(), 0); err != nil && !errors.Is(err, unix.ENOENT) {
				failed(&os.PathError{Op: "remove", Path: filepath.Join(dir.Name(), e.Name()), Err: err})
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return first
		case err != nil:
			return err
		}
	}
}
