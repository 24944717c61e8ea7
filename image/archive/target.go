package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Target receives the files of an archive: it is a tar stream or a directory.
type Target interface {
	// file writes one file. Blobs have a path below blobs/ and do not change.
	file(name string, size int64, r io.Reader) error
	// existing returns the images that are there already and stay.
	existing() ([]v1.Descriptor, error)
	// scratch returns an unnamed file on a file system with room for a layer.
	scratch() (*os.File, error)
	end() error
}

// ToTar returns a Target that writes a tar archive to w. scratch is a directory with room for a layer.
func ToTar(w io.Writer, scratch string) Target { return &tarTarget{w: tar.NewWriter(w), dir: scratch} }

type tarTarget struct {
	w    *tar.Writer
	dir  string
	made bool // the directories of blobs are written
}

// file writes a header without times and owners of this machine: the same images give the same bytes.
func (t *tarTarget) file(name string, size int64, r io.Reader) error {
	if !t.made { // without entries for directories, only root can load it with skopeo
		for _, dir := range []string{"blobs/", "blobs/sha256/"} {
			if err := t.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Format: tar.FormatUSTAR}); err != nil {
				return err
			}
		}
		t.made = true
	}
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR}
	if size >= 8<<30 {
		hdr.Format = tar.FormatGNU
	}
	if err := t.w.WriteHeader(hdr); err != nil {
		return err
	}
	if _, err := io.Copy(t.w, r); err != nil {
		return fileTooBig(err)
	}
	return nil
}

func (t *tarTarget) existing() ([]v1.Descriptor, error) { return nil, nil }

func (t *tarTarget) scratch() (*os.File, error) { return tempFile(t.dir) }
func (t *tarTarget) end() error                 { return fileTooBig(t.w.Close()) }

func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".podrun-*")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	return f, nil
}

// fileTooBig adds the usual reason why a file cannot grow: the file system of a USB stick.
func fileTooBig(err error) error {
	if errors.Is(err, unix.EFBIG) {
		return report.New(report.Failure, "save with --compress, or into a directory with --format oci-dir, or format the disk with ext4 or exFAT", "%w: FAT allows no file of 4 GB", err)
	}
	return err
}

// ToDir returns a Target that writes an OCI layout into a directory, which is made if missing. Existing
// content stays, except for images with the same names, so a USB stick is updated by writing only new
// content.
func ToDir(dir string) (Target, error) {
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	return dirTarget(dir), nil
}

type dirTarget string

func (d dirTarget) file(name string, size int64, r io.Reader) error {
	path := filepath.Join(string(d), name)
	if filepath.Dir(name) != "." && isBlob(path, size) {
		_, err := io.Copy(io.Discard, r) // podrun's own blob is verified all the same
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".podrun-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if errors.Is(err, unix.EPERM) {
		err = nil // the file system of a USB stick has no modes
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return fileTooBig(err)
}

// isBlob reports whether a file's content matches the digest in its name.
func isBlob(path string, size int64) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := digest.SHA256.Digester()
	n, err := io.Copy(sum.Hash(), io.LimitReader(f, size+1))
	return err == nil && n == size && sum.Digest().Encoded() == filepath.Base(path)
}

func (d dirTarget) existing() ([]v1.Descriptor, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	f := dirFiles{root}
	defer f.Close()
	raw, err := readSmall(f, v1.ImageIndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var index v1.Index
	if err == nil {
		err = json.Unmarshal(raw, &index)
	}
	if err != nil {
		return nil, report.New(report.Failure, "save into another directory", "%s exists and is not an image index: %w", filepath.Join(string(d), v1.ImageIndexFile), err)
	}
	return index.Manifests, nil
}

func (d dirTarget) scratch() (*os.File, error) { return tempFile(string(d)) }

func (d dirTarget) end() error {
	return errors.Join(store.SyncDir(filepath.Join(string(d), "blobs", "sha256")), store.SyncDir(string(d)))
}
