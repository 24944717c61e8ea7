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

// DefaultPartEntries is the number of entries of a layer in one call of archive.Apply. Apply keeps every
// path in memory until it returns, so a layer of a million files in one call would take 200 MB.
const DefaultPartEntries = 20_000

// tarParts splits a tar stream for several readers, one after another. Each sees the end of the archive
// after the last entry of its part.
type tarParts struct {
	r          io.Reader
	maxEntries int // of a part

	begun int   // parts
	n     int64 // bytes read
	end   int64 // of the part; -1: not known yet
	left  int   // entries until then
	dirs  []dirTime
}

// dirTime is the modification time of a directory from an earlier part: later parts put files into it.
type dirTime struct {
	name string
	at   unix.Timespec
}

// next begins the next part, if there is one.
func (p *tarParts) next() bool {
	if p.begun > 0 && p.n != p.end { // it was the archive's own end
		return false
	}
	p.begun++
	p.end, p.left = -1, p.maxEntries
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

// entry must see every header right after it was read, before it is changed.
func (p *tarParts) entry(hdr *tar.Header) {
	if name := CleanName(hdr.Name); hdr.Typeflag == tar.TypeDir && name != "" {
		p.dirs = append(p.dirs, dirTime{strings.Clone(name), timeOf(hdr)}) // a name may be part of a longer string
	}
	if p.left--; p.left > 0 || p.end >= 0 {
		return
	}
	switch hdr.Typeflag {
	case tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo: // they have no content, whatever their size is
		p.end = p.n
	case tar.TypeReg:
		if !isSparse(hdr) { // the length of a sparse file in the stream is unknown
			p.end = p.n + (hdr.Size+511)/512*512
		}
	}
}

// timeOf returns an entry's time as Apply sets it: a time that a file system may not support becomes 1970.
func timeOf(hdr *tar.Header) unix.Timespec {
	if hdr.ModTime.Before(time.Unix(0, 0)) || hdr.ModTime.After(time.Unix(0, math.MaxInt64)) {
		return unix.Timespec{}
	}
	moment, err := unix.TimeToTimespec(hdr.ModTime)
	if err != nil {
		return unix.Timespec{}
	}
	return moment
}

// restoreDirTimes restores the directories' times after several parts, as Apply does after one.
func (p *tarParts) restoreDirTimes() error {
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
