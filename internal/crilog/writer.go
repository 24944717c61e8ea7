package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Limits bound the disk space of one instance's log: MaxFiles files, each of at most MaxBytes and
// one entry (kubelet: containerLogMaxSize, containerLogMaxFiles).
type Limits struct {
	MaxBytes int64
	MaxFiles int // including the current file; at least 2
}

// Writer appends to the log of one instance. It rotates as it writes and not periodically: a
// container may write gigabytes in seconds.
type Writer struct {
	dir     string
	attempt int
	limits  Limits

	f         *os.File // the current file; nil: it could not be created yet after a rotation
	size      int64
	partial   bool   // the file ends in the middle of an entry
	last      int    // the newest rotated segment
	unwritten []byte // the rest of an entry that a full disk has cut off
}

// OpenWriter opens an instance's log at its end, or creates it. The files alone determine the
// position.
func OpenWriter(dir string, attempt int, limits Limits) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	l, err := readListing(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, attempt: attempt, limits: limits, last: l.last(attempt)}
	return w, w.open()
}

func (w *Writer) path(segment int) string {
	return filepath.Join(w.dir, segmentFile{w.attempt, segment}.name())
}

func (w *Writer) open() error {
	f, err := os.OpenFile(w.path(0), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	end := []byte{'\n'}
	st, err := f.Stat()
	if err == nil && st.Size() > 0 {
		_, err = f.ReadAt(end, st.Size()-1)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("open log: %w", err)
	}
	w.f, w.size, w.partial = f, st.Size(), end[0] != '\n'
	return nil
}

// Close closes the log.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	return w.f.Close()
}

// Write appends whole entries, or the rest of a partial one. Entries that do not fit on the disk
// are lost. The next Write with free space completes an entry that was written in part.
func (w *Writer) Write(b []byte) (int, error) {
	if len(w.unwritten) > 0 {
		n, err := w.append(w.unwritten)
		if w.unwritten = w.unwritten[n:]; err != nil {
			return 0, err
		}
	}
	for done := 0; ; {
		if done == len(b) {
			return done, nil
		}
		if w.f == nil || w.size >= w.limits.MaxBytes && !w.partial {
			if err := w.rotate(); err != nil {
				return done, err
			}
		}
		n, err := w.append(w.splitAtLimit(b[done:]))
		done += n
		if err != nil {
			if w.partial {
				w.unwritten = append(w.unwritten, b[done:done+bytes.IndexByte(b[done:], '\n')+1]...)
			}
			return done, err
		}
	}
}

// splitAtLimit returns the part of b that belongs in the current file, including the entry that
// reaches the limit.
func (w *Writer) splitAtLimit(b []byte) []byte {
	room := w.limits.MaxBytes - w.size
	if room >= int64(len(b)) {
		return b
	}
	from := max(room-1, 0)
	if end := bytes.IndexByte(b[from:], '\n'); end >= 0 {
		return b[:from+int64(end)+1]
	}
	return b
}

func (w *Writer) append(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.size += int64(n)
	if n > 0 {
		w.partial = b[n-1] != '\n'
	}
	if err != nil {
		return n, fmt.Errorf("write log: %w", err)
	}
	return n, nil
}

// rotate gives the current file its number and begins the next one.
func (w *Writer) rotate() error {
	if w.f != nil {
		l, err := readListing(w.dir)
		if err != nil {
			return err
		}
		old := l[w.attempt]
		for len(old) > max(w.limits.MaxFiles-2, 0) {
			if err := removeIfExists(w.path(old[0])); err != nil {
				return err
			}
			old = old[1:]
		}
		// Another process may have deleted it: then there is nothing to keep.
		if err := os.Rename(w.path(0), w.path(w.last+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate log: %w", err)
		}
		w.f.Close()
		w.f = nil
		w.last++
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	return w.open()
}

// Position returns where the next Write begins.
func (w *Writer) Position() (segment int, offset int64) { return w.last + 1, w.size }

// After returns what was written after a Position.
func (w *Writer) After(segment int, offset int64) ([]byte, error) {
	c, err := openInstance(w.dir, w.attempt)
	if err != nil {
		return nil, err
	}
	defer c.close()
	for len(c.files) > 0 && c.segments[0] < segment {
		c.closeFirst(1)
	}
	if len(c.files) == 0 || c.segments[0] != segment || offset > c.sizes[0] {
		return nil, fmt.Errorf("read log: segment %d is not there", segment)
	}
	b := make([]byte, c.size()-offset)
	if _, err := c.ReadAt(b, offset); err != nil && len(b) > 0 {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return b, nil
}

// CompletePartial completes an entry that a killed writer has left in part.
func (w *Writer) CompletePartial() error {
	if !w.partial {
		return nil
	}
	_, err := w.append([]byte("\n"))
	return err
}

// Prune deletes the logs of all instances but attempt and the instance before it: the kubelet keeps
// one dead instance of a container beside the living one (kubelet: pkg/kubelet/kuberuntime,
// MaxPerPodContainer).
func Prune(dir string, attempt int) error {
	l, err := readListing(dir)
	if err != nil {
		return err
	}
	all := l.attempts()
	for i, n := range all {
		if i+1 >= len(all) || all[i+1] >= attempt {
			break
		}
		for _, segment := range append(l[n], 0) {
			if err := removeIfExists(filepath.Join(dir, segmentFile{n, segment}.name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete old log: %w", err)
	}
	return nil
}
