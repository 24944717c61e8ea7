package layer

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// rebuildRequest is the one argument of the entry point _rebuild, as JSON.
type rebuildRequest struct {
	Dir   string // absolute; the unpacked layer
	Sizes bool   // check the files' sizes only, and make no stream
	Write bool   // the stream goes to standard output and the result to descriptor 4; else the stream is discarded
}

// RebuildResult is the result of a rebuild.
type RebuildResult struct {
	DiffID   digest.Digest // of the stream that was made
	Size     int64         // its length
	Changed  []ChangedFile // files that differ from the layer's tar, at most maxChanged
	Replaced bool          // the tar has a file twice, or one that replaces others: their content is lost, and DiffID has no meaning
}

// ChangedFile is a file of a layer that has changed.
type ChangedFile struct {
	Name string // in the image: usr/bin/env
	Why  string // "its content has changed"
	Meta bool   // only owner or mode differ
}

// maxChanged bounds the list of changed files. Longer lists are of no use.
const maxChanged = 100

func rebuildMain(args []string) int {
	var request rebuildRequest
	out, result := io.Writer(nil), os.Stdout
	err := fmt.Errorf("%s: no request", protocol.EntryRebuild)
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &request)
	}
	if request.Write {
		out, result = os.Stdout, os.NewFile(protocol.FDRebuildResult, "result")
	}
	var r *RebuildResult
	if err == nil {
		r, err = runRebuild(request, os.NewFile(protocol.FDRebuildRecipe, RecipeFile), out)
	}
	if err == nil {
		err = json.NewEncoder(result).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runRebuild(request rebuildRequest, in io.Reader, out io.Writer) (*RebuildResult, error) {
	f := &filter{limits: Limits{Bytes: math.MaxInt64, Entries: math.MaxInt}}
	var err error
	if f.uids, err = readIDMap("/proc/self/uid_map"); err != nil {
		return nil, err
	}
	if f.gids, err = readIDMap("/proc/self/gid_map"); err != nil {
		return nil, err
	}
	if err := Confine(request.Dir, 0, unix.MS_RDONLY); err != nil {
		return nil, err
	}
	rec, err := openRecipe(in)
	if err != nil {
		return nil, err
	}
	c := &comparer{recipe: rec, sum: crc64.New(crcTable)}
	if request.Sizes {
		return &c.result, c.sizes()
	}
	sum := sha256.New()
	n := &counter{sum: sum, out: out}
	if err := c.compare(f, n); err != nil {
		return nil, err
	}
	c.result.DiffID, c.result.Size = digest.NewDigest(digest.SHA256, sum), n.n
	return &c.result, nil
}

// counter hashes and counts the stream, and copies it to out.
type counter struct {
	sum hash.Hash
	out io.Writer // may be nil
	n   int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.sum.Write(p)
	c.n += int64(len(p))
	if c.out == nil {
		return len(p), nil
	}
	return c.out.Write(p)
}

// comparer reads a layer's stream as recorded in the recipe, and compares the files with it.
type comparer struct {
	recipe *recipeReader
	result RebuildResult

	raw  []byte
	file *os.File // the file whose content is being streamed; nil with left > 0: it is missing
	name string
	left int64
	want uint64
	sum  hash.Hash64
	bad  string // the error of the content so far
}

// sizes compares the sizes of regular files.
func (c *comparer) sizes() error {
	for {
		e, err := c.recipe.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case e.kind == rawRecord:
			continue
		}
		c.dropReplaced(e.name, true)
		var st unix.Stat_t
		switch err := unix.Lstat("/"+CleanName(e.name), &st); {
		case err != nil:
			c.reportChanged(e.name, lstatProblem(err), false)
		case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != e.size:
			c.reportChanged(e.name, fmt.Sprintf("it has %d bytes instead of %d", st.Size, e.size), false)
		}
	}
}

// compare makes the stream and compares everything.
func (c *comparer) compare(f *filter, out io.Writer) error {
	stream := io.TeeReader(c, out)
	for r := tar.NewReader(stream); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return recipeError(err)
		}
		hdr.Name = path.Clean(hdr.Name)
		kept, err := f.entry(hdr)
		if err != nil {
			return err
		}
		if !kept || strings.HasPrefix(path.Base(hdr.Name), whiteoutPrefix) || CleanName(hdr.Name) == "" {
			continue
		}
		c.dropReplaced(hdr.Name, hdr.Typeflag != tar.TypeDir)
		if hdr.Typeflag == tar.TypeLink { // its entry sets the other's owner and mode too
			other := CleanName(hdr.Linkname)
			c.result.Changed = slices.DeleteFunc(c.result.Changed, func(b ChangedFile) bool { return b.Meta && b.Name == other })
		}
		if reason, meta := compareMetadata(hdr); reason != "" {
			c.reportChanged(hdr.Name, reason, meta)
		}
	}
	_, err := io.Copy(io.Discard, stream)
	return err
}

// Read returns the stream. Missing content is replaced by zeros of the same length, so that the rest keeps
// its offset.
func (c *comparer) Read(p []byte) (int, error) {
	for len(c.raw) == 0 && c.left == 0 {
		e, err := c.recipe.next()
		if err != nil {
			return 0, err
		}
		switch e.kind {
		case rawRecord:
			c.raw = e.raw
		case payloadRecord:
			c.begin(e)
		case sparseRecord:
			c.begin(e)
			if _, err := io.Copy(io.Discard, fileContent{c}); err != nil {
				return 0, err
			}
		}
	}
	if len(c.raw) > 0 {
		n := copy(p, c.raw)
		c.raw = c.raw[n:]
		return n, nil
	}
	return fileContent{c}.Read(p)
}

func (c *comparer) begin(e recipeEntry) {
	c.name, c.left, c.want = e.name, e.size, e.sum
	c.sum.Reset()
	var err error
	if c.file, err = openUnpacked(e.name); err != nil {
		c.bad = lstatProblem(err)
		return
	}
	if st, err := c.file.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() != e.size {
		c.bad = "its size has changed"
	}
}

// fileContent reads the content of one file.
type fileContent struct{ c *comparer }

func (r fileContent) Read(p []byte) (int, error) {
	c := r.c
	if c.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), c.left)]
	n := 0
	if c.bad == "" {
		var err error
		if n, err = c.file.Read(p); err != nil || n == 0 {
			c.bad = fmt.Sprintf("it cannot be read: %v", err)
			n = 0
		}
	}
	if n == 0 { // the file is unreadable or too short: continue with zeros
		n = len(p)
		clear(p)
	}
	c.sum.Write(p[:n])
	if c.left -= int64(n); c.left == 0 {
		if c.bad == "" && c.sum.Sum64() != c.want {
			c.bad = "its content has changed"
		}
		if c.file != nil {
			c.file.Close()
			c.file = nil
		}
		if c.bad != "" {
			c.reportChanged(c.name, c.bad, false)
			c.bad = ""
		}
	}
	return n, nil
}

func (c *comparer) reportChanged(name, reason string, meta bool) {
	if n := len(c.result.Changed); n < maxChanged && (n == 0 || c.result.Changed[n-1].Name != CleanName(name)) {
		c.result.Changed = append(c.result.Changed, ChangedFile{CleanName(name), reason, meta})
	}
}

// dropReplaced drops the findings about a file that a later entry replaces, and about everything below it
// unless both are directories.
func (c *comparer) dropReplaced(name string, below bool) {
	name = CleanName(name)
	kept := c.result.Changed[:0]
	for _, b := range c.result.Changed {
		if b.Name == name || below && strings.HasPrefix(b.Name, name+"/") {
			c.result.Replaced = true
			continue
		}
		kept = append(kept, b)
	}
	c.result.Changed = kept
}

func lstatProblem(err error) string {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "it does not exist"
	}
	return fmt.Sprintf("it cannot be read: %v", err)
}

// compareMetadata returns how a file differs from its header, without its content, and whether only owner or
// mode differ.
func compareMetadata(hdr *tar.Header) (reason string, meta bool) {
	name := "/" + CleanName(hdr.Name)
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return lstatProblem(err), false
	}
	want := map[byte]uint32{
		tar.TypeReg: unix.S_IFREG, tar.TypeDir: unix.S_IFDIR, tar.TypeSymlink: unix.S_IFLNK, tar.TypeFifo: unix.S_IFIFO,
	}[hdr.Typeflag]
	switch {
	case hdr.Typeflag == tar.TypeLink:
		var other unix.Stat_t
		if err := unix.Lstat("/"+CleanName(hdr.Linkname), &other); err != nil || other.Ino != st.Ino {
			return "it is no link to " + CleanName(hdr.Linkname) + " any more", false
		}
		want = st.Mode & unix.S_IFMT
	case want == 0:
		return "", false
	case st.Mode&unix.S_IFMT != want:
		return "it is a file of another type", false
	case hdr.Typeflag == tar.TypeReg && st.Size != hdr.Size:
		return fmt.Sprintf("it has %d bytes instead of %d", st.Size, hdr.Size), false
	case hdr.Typeflag == tar.TypeSymlink:
		if to, err := os.Readlink(name); err != nil || to != hdr.Linkname {
			return "its target has changed", false
		}
	}
	switch {
	case int(st.Uid) != hdr.Uid || int(st.Gid) != hdr.Gid:
		return fmt.Sprintf("it belongs to %d:%d instead of %d:%d", st.Uid, st.Gid, hdr.Uid, hdr.Gid), true
	case want != unix.S_IFLNK && st.Mode&0o7777 != uint32(hdr.Mode)&0o7777:
		return fmt.Sprintf("its mode is %o instead of %o", st.Mode&0o7777, hdr.Mode&0o7777), true
	}
	return "", false
}
