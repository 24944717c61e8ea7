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

// PartialDirName is the directory of partially fetched layers: a file for each blob, named by its digest.
// The next pull continues from there.
const PartialDirName = "partial"

// PartialAge is the time after its last change after which a partial file is removed.
const PartialAge = 7 * 24 * time.Hour

// partialFile is a partially fetched blob. It only saves traffic: its content is verified with the rest, and
// a pull works without it if there is no space.
type partialFile struct {
	f    *os.File
	size int64 // of the readable part
	most int64 // 0: limited by the disk only
}

// openPartial opens or makes the file of a blob with the given size. It fails while another process fetches
// the same blob, and if the disk is nearly full.
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

// append writes b at the end.
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

// remove removes the file's name. Its space is freed once the file is closed.
func (p *partialFile) remove() error {
	err := os.Remove(p.f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *partialFile) close() error { return p.f.Close() }

// RemovePartial removes the file of a blob whose layer is in the store: the process that fetched it may have
// been killed in between. If this fails, RemovePartials removes it by age.
func (s *Downloader) RemovePartial(d digest.Digest) {
	_ = os.Remove(filepath.Join(s.PartialDir, d.Encoded()))
}

// RemovePartials removes partial files that have not changed for the given age. A process that has one open
// can still read it.
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
