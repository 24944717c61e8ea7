package download

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// PartialDirName has what was fetched of layers that are not in the store yet: a file for
// each blob, by its digest. A pull that was cut off or killed goes on from there.
const PartialDirName = "partial"

// PartialAge is how long nobody may have gone on with one before it is removed.
const PartialAge = 7 * 24 * time.Hour

// partialFile is such a file. It is nothing but a saving: what is read from it is verified
// with the rest, and where there is no room for it a pull does without.
type partialFile struct {
	f    *os.File
	size int64 // of what can be read
	most int64 // 0: as much as there is room for
}

// openPartial opens or makes the file of a blob of so many bytes. There is none while
// another process fetches the same blob, or where the disk is nearly full.
func (s *Downloader) openPartial(d digest.Digest, size int64) (*partialFile, error) {
	dir := s.PartialDir
	limits, err := s.Limits(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	if size > limits.Bytes/4 { // the layer itself needs the rest
		return nil, errors.New("the disk is nearly full")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, d.Encoded()), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	p := &partialFile{f: f, most: s.MaxPartial}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	st, err := f.Stat()
	if err == nil {
		p.size = st.Size()
		if p.size > size {
			p.size, err = 0, f.Truncate(0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// append adds to the end.
func (p *partialFile) append(b []byte) error {
	if p.most > 0 && p.size+int64(len(b)) > p.most {
		return unix.ENOSPC
	}
	n, err := p.f.WriteAt(b, p.size)
	if err != nil {
		return err
	}
	p.size += int64(n)
	return nil
}

// remove frees the file's name and, once it is closed, its room.
func (p *partialFile) remove() error {
	err := os.Remove(p.f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *partialFile) close() error { return p.f.Close() }

// RemovePartial removes the file of a blob whose layer is in the store: who brought it may have
// been killed in between. What cannot be removed goes with its age.
func (s *Downloader) RemovePartial(d digest.Digest) {
	_ = os.Remove(filepath.Join(s.PartialDir, d.Encoded()))
}

// RemovePartials removes what pulls have left that nobody went on with for so long. One
// that somebody has open stays readable for them.
func (s *Downloader) RemovePartials(age time.Duration) error {
	dir := s.PartialDir
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		st, err := e.Info()
		if err == nil && time.Since(st.ModTime()) >= age {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
