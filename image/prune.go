package image

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// Uses reports which images and layers are in use. In doubt the functions return true.
type Uses struct {
	// Layer reports whether a pod uses a layer (one of pod.Image.Layers); nil: none does.
	Layer func(layerDir string) bool
	// Image reports whether a pod uses an image or may be made from one; nil: none.
	Image func(id string, names []string) bool
}

// PruneOptions selects the images that Prune removes.
type PruneOptions struct {
	Uses
	All    bool      // also images with names, if nothing uses them
	Before time.Time // only those added before; zero: all
}

// Pruned is what was removed.
type Pruned struct {
	Images []Info
	Bytes  int64 // of the files of layers
}

// Prune removes images without a name, or with All images that nothing uses, and every layer that nothing
// needs. Layers are left for the next run if another process adds or uses images at this moment.
func (s *Store) Prune(o PruneOptions) (Pruned, error) {
	list, err := s.List()
	if err != nil {
		return Pruned{}, fmt.Errorf("prune images: %w", err)
	}
	var p Pruned
	for _, i := range list {
		keepNamed := len(i.Names) > 0 && !o.All
		if keepNamed || !o.Before.IsZero() && !i.Added.Before(o.Before) || o.uses(i) {
			continue
		}
		if err := s.drop(i); err != nil {
			return p, fmt.Errorf("prune images: %w", err)
		}
		p.Images = append(p.Images, i)
	}
	p.Bytes, err = s.freeLayers(o.Layer)
	if err != nil {
		err = fmt.Errorf("prune images: %w", err)
	}
	return p, err
}

func (u Uses) uses(i Info) bool { return u.Image != nil && u.Image(i.ID, i.Names) }

// drop removes an image's record and its names, unless it got another name in between.
func (s *Store) drop(i Info) error {
	lock, err := s.LockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	names, err := s.Names()
	if err != nil {
		return err
	}
	var files []string
	for _, n := range names {
		if n.ID.String() != i.ID {
			continue
		}
		if !slices.Contains(i.Names, n.Name) {
			return nil
		}
		files = append(files, s.NameFile(n.Name))
	}
	return s.RemoveFiles(append(files, s.ImageFile(digest.Digest(i.ID)))...)
}

// The kubelet's defaults for a disk that is too full, in percent, and for the minimum age of an image that
// may be removed (kubelet: pkg/kubelet/apis/config/v1beta1/defaults.go, imageGCHighThresholdPercent and so
// on).
const (
	highThreshold = 85
	lowThreshold  = 80
	minimumAge    = 2 * time.Minute
)

// GarbageCollect frees disk space as the kubelet's image garbage collection does. If more than 85 % of the
// store's disk is in use, it removes the least recently used images until 80 % is reached (kubelet:
// pkg/kubelet/images/image_gc_manager.go). It keeps images in use, images younger than two minutes and,
// unlike the kubelet, images that were not pulled: what came from an archive cannot be pulled again. uses is
// called only if something is to be removed. With enough free space only the disk's figures are read.
func (s *Store) GarbageCollect(uses func() (Uses, error)) (Pruned, error) {
	capacity, available, err := s.disk(s.Dir)
	if err != nil || capacity == 0 || 100-available*100/capacity < highThreshold {
		return Pruned{}, err
	}
	return s.collect(uses, lowThreshold)
}

// RemoveUnused removes all images that GarbageCollect may remove, however full the disk is.
func (s *Store) RemoveUnused(uses func() (Uses, error)) (Pruned, error) { return s.collect(uses, 0) }

// collect removes images until at most low percent of the disk are in use.
func (s *Store) collect(uses func() (Uses, error), low int64) (p Pruned, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make room on the disk: %w", err)
		}
	}()
	u, err := uses()
	if err != nil {
		return p, err
	}
	if p.Bytes, err = s.freeLayers(u.Layer); err != nil { // what earlier removals left behind
		return p, err
	}
	list, err := s.List()
	if err != nil {
		return p, err
	}
	slices.SortStableFunc(list, func(a, b Info) int {
		return cmp.Or(a.Used.Compare(b.Used), a.Added.Compare(b.Added))
	})
	for _, i := range list {
		capacity, available, err := s.disk(s.Dir)
		if err != nil || available >= capacity*(100-low)/100 {
			return p, err
		}
		if !i.Pulled || time.Since(i.Used) < minimumAge || time.Since(i.Added) < minimumAge || u.uses(i) {
			continue
		}
		if err := s.drop(i); err != nil {
			return p, err
		}
		freed, err := s.freeLayers(u.Layer)
		if err != nil {
			return p, err
		}
		p.Images, p.Bytes = append(p.Images, i), p.Bytes+freed
	}
	return p, nil
}

// diskOf returns the size of a directory's file system and its free space, in bytes.
func diskOf(dir string) (capacity, available int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("look at free space: %w", err)
	}
	return int64(st.Blocks) * int64(st.Bsize), int64(st.Bavail) * int64(st.Bsize), nil
}

// usedPrecision is the precision of an image's time of use. It limits writes: each update is one.
const usedPrecision = time.Hour

// touchUsed records that an image is used, as the modification time of its record, which is not synced.
func (s *Store) touchUsed(id string) {
	file := s.ImageFile(digest.Digest(id))
	if st, err := os.Stat(file); err == nil && time.Since(st.ModTime()) > usedPrecision {
		now := time.Now()
		os.Chtimes(file, now, now) // on failure the image counts as unused, which is acceptable
	}
}
