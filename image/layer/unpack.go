package layer

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/containerd/containerd/v2/pkg/archive"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/protocol"
)

// EntryPoints returns the re-exec entry points of this package, for main to register.
func EntryPoints() map[string]func(args []string) int {
	return map[string]func(args []string) int{protocol.EntryUnpack: unpackMain, protocol.EntryRemoveLayers: removeMain, protocol.EntryRebuild: rebuildMain}
}

// unpackRequest is the parent's request, as JSON in the one argument. The tar stream is on standard input.
type unpackRequest struct {
	Dir    string // absolute; the directory to fill
	Limits Limits
	Part   int // entries in one call of Apply
}

// unpackResult is the child's result on standard output. Errors go to standard error as one line.
type unpackResult struct {
	records.LayerStats
	OpaqueRoot bool
}

func unpackMain(args []string) int {
	result, err := runUnpack(args)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runUnpack(args []string) (*unpackResult, error) {
	var request unpackRequest
	if len(args) != 1 {
		return nil, fmt.Errorf("%s: no request", protocol.EntryUnpack)
	}
	if err := json.Unmarshal([]byte(args[0]), &request); err != nil {
		return nil, fmt.Errorf("%s: %w", protocol.EntryUnpack, err)
	}
	debug.SetGCPercent(50) // Apply keeps every path of a part in memory: 140 bytes a file, 400 a directory
	f := &filter{limits: request.Limits}
	var err error
	if f.uids, err = readIDMap("/proc/self/uid_map"); err != nil {
		return nil, err
	}
	if f.gids, err = readIDMap("/proc/self/gid_map"); err != nil {
		return nil, err
	}
	unix.Umask(0)
	if err := Confine(request.Dir, request.Limits.Bytes, 0); err != nil {
		return nil, err
	}
	rec := newRecipeWriter(bufio.NewReaderSize(os.Stdin, 256<<10), os.NewFile(protocol.FDUnpackRecipe, RecipeFile))
	result, err := apply(rec, f, request.Part)
	if err == nil {
		err = rec.close()
	}
	if err != nil {
		return nil, DescribeTarError(err, f.count.Entries)
	}
	return result, nil
}

// apply fills the root directory. It also reads the rest of the stream: its writer hashes it to the end.
func apply(r *recipeWriter, f *filter, part int) (*unpackResult, error) {
	w := whiteouts{deleted: map[string]bool{}, opaque: map[string]bool{}}
	p := &tarParts{r: r, maxEntries: part}
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
	if err := p.restoreDirTimes(); err != nil {
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
