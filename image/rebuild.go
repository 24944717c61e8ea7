package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
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
)

// rebuildStage makes a layer's tar stream again, of its recipe (on descriptor 3) and its
// unpacked files, in a process that sees nothing but those.
const rebuildStage = "_rebuild"

// rebuildOrder is the stage's one argument, as JSON.
type rebuildOrder struct {
	Dir   string // absolute; the unpacked layer
	Sizes bool   // look at the files' sizes only, and make no stream
	Write bool   // the stream goes to standard output and the result to descriptor 4; else the stream goes nowhere
}

// rebuilt is what became of it.
type rebuilt struct {
	DiffID   digest.Digest // of the stream that was made
	Size     int64         // its length
	Bad      []badFile     // files that are not what the layer's tar had, at most maxBad
	Replaced bool          // the tar has files twice, or ones that replace others: they are lost, and DiffID means nothing
}

// badFile is a file of a layer that has changed.
type badFile struct {
	Name string // in the image: usr/bin/env
	Why  string // "its content has changed"
	Meta bool   // it is about owner or mode
}

// maxBad is how many files are named. Who has more needs no list.
const maxBad = 100

func rebuildMain(args []string) int {
	var order rebuildOrder
	out, result := io.Writer(nil), os.Stdout
	err := fmt.Errorf("%s: no order", rebuildStage)
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &order)
	}
	if order.Write {
		out, result = os.Stdout, os.NewFile(4, "result")
	}
	var r *rebuilt
	if err == nil {
		r, err = rebuild(order, os.NewFile(3, recipeFile), out)
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

func rebuild(order rebuildOrder, in io.Reader, out io.Writer) (*rebuilt, error) {
	f := &filter{limits: limits{Bytes: math.MaxInt64, Entries: math.MaxInt}}
	var err error
	if f.uids, err = readIDMap("/proc/self/uid_map"); err != nil {
		return nil, err
	}
	if f.gids, err = readIDMap("/proc/self/gid_map"); err != nil {
		return nil, err
	}
	if err := confine(order.Dir, 0, unix.MS_RDONLY); err != nil {
		return nil, err
	}
	rec, err := openRecipe(in)
	if err != nil {
		return nil, err
	}
	c := &comparer{recipe: rec, sum: crc64.New(crcTable)}
	if order.Sizes {
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

// counter takes the stream that was made.
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

// comparer reads a layer's stream as the recipe says, and compares what it says of the
// files with what they are.
type comparer struct {
	recipe *recipe
	result rebuilt

	raw  []byte
	file *os.File // whose content the stream has now; nil with left > 0: it is not there
	name string
	left int64
	want uint64
	sum  hash.Hash64
	bad  string // what is wrong with the content so far
}

// sizes looks at the sizes of regular files.
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
		c.forget(e.name, true)
		var st unix.Stat_t
		switch err := unix.Lstat("/"+inArchive(e.name), &st); {
		case err != nil:
			c.blame(e.name, missing(err), false)
		case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != e.size:
			c.blame(e.name, fmt.Sprintf("it has %d bytes instead of %d", st.Size, e.size), false)
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
			return damagedRecipe(err)
		}
		hdr.Name = path.Clean(hdr.Name)
		kept, err := f.entry(hdr)
		if err != nil {
			return err
		}
		if !kept || strings.HasPrefix(path.Base(hdr.Name), whiteoutPrefix) || inArchive(hdr.Name) == "" {
			continue
		}
		c.forget(hdr.Name, hdr.Typeflag != tar.TypeDir)
		if hdr.Typeflag == tar.TypeLink { // its entry sets the other's owner and mode too
			other := inArchive(hdr.Linkname)
			c.result.Bad = slices.DeleteFunc(c.result.Bad, func(b badFile) bool { return b.Meta && b.Name == other })
		}
		if why, meta := differs(hdr); why != "" {
			c.blame(hdr.Name, why, meta)
		}
	}
	_, err := io.Copy(io.Discard, stream)
	return err
}

// Read is the stream. Content that is not there is made up, so that what follows it has
// its place.
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
		case markRecord:
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
		c.bad = missing(err)
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
	if n == 0 { // nothing is read any more
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
			c.blame(c.name, c.bad, false)
			c.bad = ""
		}
	}
	return n, nil
}

func (c *comparer) blame(name, why string, meta bool) {
	if n := len(c.result.Bad); n < maxBad && (n == 0 || c.result.Bad[n-1].Name != inArchive(name)) {
		c.result.Bad = append(c.result.Bad, badFile{inArchive(name), why, meta})
	}
}

// forget drops what was found of a file that a later entry replaces, and with it of what
// is below it unless both are directories.
func (c *comparer) forget(name string, below bool) {
	name = inArchive(name)
	kept := c.result.Bad[:0]
	for _, b := range c.result.Bad {
		if b.Name == name || below && strings.HasPrefix(b.Name, name+"/") {
			c.result.Replaced = true
			continue
		}
		kept = append(kept, b)
	}
	c.result.Bad = kept
}
