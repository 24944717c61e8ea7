package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// RecordVersion is written into every record; a reader refuses a newer one.
const RecordVersion = 1

// Header begins every record.
type Header struct {
	Version int `json:"version"`
}

func (h Header) version() int { return h.Version }

type versioned interface{ version() int }

// Image is images/<id>.json. Manifest and Config are kept as text, byte for byte, since digests are over
// bytes.
type Image struct {
	Header
	ID        digest.Digest   `json:"id"`     // of Config
	Digest    digest.Digest   `json:"digest"` // of Manifest
	MediaType string          `json:"mediaType"`
	DiffIDs   []digest.Digest `json:"diffIDs"` // lowest first, as in Config
	Added     time.Time       `json:"added"`
	Pulled    bool            `json:"pulled,omitempty"` // from a registry, where it can be pulled again
	Manifest  string          `json:"manifest"`
	Config    string          `json:"config"`
	Index     string          `json:"index,omitempty"` // through which it was pulled last, for names that are added later
}

// Name is names/<sha256 of Name>.json.
type Name struct {
	Header
	Name   string        `json:"name"`
	ID     digest.Digest `json:"id"`
	Digest digest.Digest `json:"digest"`          // of the manifest
	Top    digest.Digest `json:"top"`             // what the name stood for: an index's digest, or Digest
	Index  string        `json:"index,omitempty"` // the index with digest Top, byte for byte
	Origin string        `json:"origin,omitempty"`
}

// The origins of a name: what decides what it stands for now. An image may have names of both. "" is the
// origin in records of older podruns or of an unknown source: then the image's own field applies.
const (
	OriginRegistry = "registry"
	OriginLocal    = "machine" // given by an archive or by the user
)

// CanPullAgain reports whether a name's image can be pulled from a registry by it. image is the image's own
// field.
func (n *Name) CanPullAgain(image bool) bool {
	return n.Origin == OriginRegistry || n.Origin == "" && image
}

// CanPullAgain reports whether an image can be pulled from a registry by all of its names.
func (r *Image) CanPullAgain(names []*Name) bool {
	any := false
	for _, n := range names {
		if n.ID == r.ID {
			if any = true; !n.CanPullAgain(r.Pulled) {
				return false
			}
		}
	}
	return any || r.Pulled
}

// Layer is layers/<diffid>/layer.json.
type Layer struct {
	Header
	DiffID     digest.Digest `json:"diffID"`
	Size       int64         `json:"size"` // bytes of the tar stream
	OpaqueRoot bool          `json:"opaqueRoot,omitempty"`
	Boot       string        `json:"boot,omitempty"` // of the machine in which it was stored: see integrity/recheck.go
	LayerStats
}

// LayerStats counts what unpacking a layer made on disk.
type LayerStats struct {
	Entries        int   `json:"entries"`            // of the tar stream
	Bytes          int64 `json:"bytes"`              // of regular files
	UnmappedOwners int   `json:"squashed,omitempty"` // files whose owner is not mapped and became 0
	Devices        int   `json:"devices,omitempty"`  // device nodes left out
}

// ImageFile returns the path of an image's record.
func (s *Store) ImageFile(id digest.Digest) string {
	return filepath.Join(s.Dir, ImagesDir, id.Encoded()+".json")
}

// NameFile returns the path of a name's record.
func (s *Store) NameFile(name string) string {
	return filepath.Join(s.Dir, NamesDir, digest.FromString(name).Encoded()+".json")
}

// LayerDir returns the directory of a layer.
func (s *Store) LayerDir(diffID digest.Digest) string {
	return filepath.Join(s.Dir, LayersDir, diffID.Encoded())
}

// LayerFS is the overlay's lower directory inside a layer's directory.
const LayerFS = "fs"

// LayerFile is the record in a layer's directory.
const LayerFile = "layer.json"

// ReadImage reads the record of an image.
func (s *Store) ReadImage(id digest.Digest) (*Image, error) {
	r, err := ReadRecord[Image](s.ImageFile(id))
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", id, err)
	}
	return r, nil
}

// ReadName reads the record of a name.
func (s *Store) ReadName(name string) (*Name, error) {
	r, err := ReadRecord[Name](s.NameFile(name))
	if err != nil {
		return nil, fmt.Errorf("read name %s: %w", name, err)
	}
	return r, nil
}

// ReadLayer reads the record of a layer. It returns an error if the layer is marked as damaged.
func (s *Store) ReadLayer(diffID digest.Digest) (*Layer, error) {
	r, err := ReadRecord[Layer](filepath.Join(s.LayerDir(diffID), LayerFile))
	if err != nil {
		return nil, fmt.Errorf("read layer %s: %w", diffID, err)
	}
	if reason, err := os.ReadFile(s.damagedFile(diffID)); err == nil {
		return nil, fmt.Errorf("layer %s is damaged: %s", diffID, reason)
	}
	return r, nil
}

// Images reads every image record. The readable ones are returned with an error too.
func (s *Store) Images() ([]*Image, error) {
	return listRecords[Image](filepath.Join(s.Dir, ImagesDir))
}

// Names reads every name record, as Images does.
func (s *Store) Names() ([]*Name, error) {
	return listRecords[Name](filepath.Join(s.Dir, NamesDir))
}

func listRecords[T versioned](dir string) ([]*T, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var list []*T
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // being written
			continue
		}
		r, err := ReadRecord[T](filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			list = append(list, r)
		case !os.IsNotExist(err): // else removed in between
			errs = append(errs, fmt.Errorf("list images: %w", err))
		}
	}
	return list, errors.Join(errs...)
}

// ReadRecord reads a record and verifies its checksum and version.
func ReadRecord[T versioned](path string) (*T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(T)
	err = verifyChecksum(b)
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, report.New(report.Failure, "remove it, then pull or load its image again", "%s is damaged: %w", path, err)
	}
	if v := (*r).version(); v < 1 || v > RecordVersion {
		return nil, fmt.Errorf("%s: version %d was not written by this podrun", path, v)
	}
	return r, nil
}

// WriteRecord writes a record with its checksum, durably.
func WriteRecord(path string, r any) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.WriteFile(path, WithChecksum(b))
}

// DecodeConfig decodes the image's config.
func (r *Image) DecodeConfig() (*v1.Image, error) {
	var c v1.Image
	if err := json.Unmarshal([]byte(r.Config), &c); err != nil {
		return nil, fmt.Errorf("read config of image %s: %w", r.ID, err)
	}
	return &c, nil
}
