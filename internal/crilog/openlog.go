package crilog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// openLog is the log of one instance at one moment: its files, oldest first. They stay readable
// when they are rotated away.
type openLog struct {
	files    []*os.File
	segments []int // their numbers; the file that is written to has the number that it will get
	sizes    []int64
	written  []time.Time // when each was written to last
}

// openInstance opens all files of an attempt; fs.ErrNotExist if there is none.
func openInstance(dir string, attempt int) (*openLog, error) {
	for {
		c, err := tryOpenInstance(dir, attempt)
		if err != nil || c != nil {
			return c, err
		}
	}
}

// tryOpenInstance returns nil if files came or went meanwhile.
func tryOpenInstance(dir string, attempt int) (c *openLog, err error) {
	path := filepath.Join(dir, segmentFile{attempt, 0}.name())
	current, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l, err := readListing(dir)
	if err != nil {
		current.Close()
		return nil, err
	}
	if !hasName(current, path) {
		current.Close()
		return nil, nil // the list may lack a file that was renamed during the listing
	}
	c = &openLog{}
	defer func() {
		if err != nil {
			c.close()
			c = nil
		}
	}()
	for _, segment := range l[attempt] {
		f, err := os.Open(filepath.Join(dir, segmentFile{attempt, segment}.name()))
		if errors.Is(err, fs.ErrNotExist) && segment != l.last(attempt) {
			continue // deleted just now by a rotation
		}
		if err != nil {
			current.Close()
			return c, fmt.Errorf("open log: %w", err)
		}
		c.add(f, segment)
	}
	if current != nil {
		c.add(current, l.last(attempt)+1)
	}
	if len(c.files) == 0 {
		return c, fmt.Errorf("open log: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	}
	for _, f := range c.files {
		st, err := f.Stat()
		if err != nil {
			return c, fmt.Errorf("open log: %w", err)
		}
		c.sizes, c.written = append(c.sizes, st.Size()), append(c.written, st.ModTime())
	}
	return c, nil
}

// hasName reports whether path is f, or is missing if f is nil. The inode of an open file is not
// reused.
func hasName(f *os.File, path string) bool {
	now, err := os.Stat(path)
	if f == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	opened, oerr := f.Stat()
	return err == nil && oerr == nil && os.SameFile(opened, now)
}

func (c *openLog) add(f *os.File, segment int) {
	c.files = append(c.files, f)
	c.segments = append(c.segments, segment)
}

func (c *openLog) close() {
	for _, f := range c.files {
		f.Close()
	}
}

// closeFirst closes the first n files.
func (c *openLog) closeFirst(n int) {
	for _, f := range c.files[:n] {
		f.Close()
	}
	c.files, c.segments, c.sizes, c.written = c.files[n:], c.segments[n:], c.sizes[n:], c.written[n:]
}

// closeBefore closes the files that were written to last before a moment. The last file stays.
func (c *openLog) closeBefore(moment time.Time) {
	n := 0
	for n < len(c.files)-1 && c.written[n].Before(moment) {
		n++
	}
	c.closeFirst(n)
}

// keepFirst closes all files but the first.
func (c *openLog) keepFirst() {
	for _, f := range c.files[1:] {
		f.Close()
	}
	c.files, c.segments, c.sizes, c.written = c.files[:1], c.segments[:1], c.sizes[:1], c.written[:1]
}

func (c *openLog) size() (sum int64) {
	for _, n := range c.sizes {
		sum += n
	}
	return sum
}

// ReadAt reads as if the files were one.
func (c *openLog) ReadAt(b []byte, pos int64) (n int, err error) {
	for i, f := range c.files {
		if pos >= c.sizes[i] {
			pos -= c.sizes[i]
			continue
		}
		m, err := f.ReadAt(b[n:n+int(min(int64(len(b)-n), c.sizes[i]-pos))], pos)
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
		pos = 0
	}
	return n, io.EOF
}

// seek sets the position at which reading begins, counted over all files, and closes earlier files.
func (c *openLog) seek(pos int64) error {
	for len(c.files) > 1 && pos >= c.sizes[0] {
		pos -= c.sizes[0]
		c.closeFirst(1)
	}
	_, err := c.files[0].Seek(pos, io.SeekStart)
	return err
}
