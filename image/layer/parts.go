package layer

import (
	"archive/tar"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultPartEntries is how many entries of a layer archive.Apply is given at once. It remembers every
// path until it ends, so a layer of a million files in one would take 200 MB.
const DefaultPartEntries = 20_000

// tarParts hands a tar stream to several readers, one after the other: each sees the end of the
// archive behind an entry with which its part ends.
type tarParts struct {
	r    io.Reader
	most int // entries in a part

	begun int   // parts
	n     int64 // bytes that were read
	end   int64 // of the part; -1: it is not known yet
	left  int   // entries until then
	dirs  []dirTime
}

// dirTime is when a directory of an earlier part was changed: later parts put files into it.
type dirTime struct {
	name string
	at   unix.Timespec
}

// next begins a part, if there is one more.
func (p *tarParts) next() bool {
	if p.begun > 0 && p.n != p.end { // it was the archive's own end
		return false
	}
	p.begun++
	p.end, p.left = -1, p.most
	return true
}

func (p *tarParts) Read(b []byte) (int, error) {
	if p.end >= 0 {
		if p.n >= p.end {
			return 0, io.EOF
		}
		b = b[:min(int64(len(b)), p.end-p.n)]
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// entry has to see every header right after it was read, before anything of it is changed.
func (p *tarParts) entry(hdr *tar.Header) {
	if name := CleanName(hdr.Name); hdr.Typeflag == tar.TypeDir && name != "" {
		p.dirs = append(p.dirs, dirTime{strings.Clone(name), timeOf(hdr)}) // a name may be a piece of a longer text
	}
	if p.left--; p.left > 0 || p.end >= 0 {
		return
	}
	switch hdr.Typeflag {
	case tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo: // whatever their size says
		p.end = p.n
	case tar.TypeReg:
		if !isSparse(hdr) { // how much of one is in the stream nobody says
			p.end = p.n + (hdr.Size+511)/512*512
		}
	}
}

// timeOf is an entry's time as Apply sets it: what a file system may not know is 1970.
func timeOf(hdr *tar.Header) unix.Timespec {
	if hdr.ModTime.Before(time.Unix(0, 0)) || hdr.ModTime.After(time.Unix(0, math.MaxInt64)) {
		return unix.Timespec{}
	}
	at, err := unix.TimeToTimespec(hdr.ModTime)
	if err != nil {
		return unix.Timespec{}
	}
	return at
}

// times puts the directories' back, after several parts, as Apply does after one.
func (p *tarParts) times() error {
	if p.begun == 1 {
		return nil
	}
	for _, d := range p.dirs {
		err := unix.UtimesNanoAt(unix.AT_FDCWD, "/"+d.name, []unix.Timespec{d.at, d.at}, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !isNotExist(err) {
			return fmt.Errorf("set the time of %s: %w", d.name, err)
		}
	}
	return nil
}
