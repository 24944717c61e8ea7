package image

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

// recordVersion is written into every record; a reader refuses a newer one.
const recordVersion = 1

// header begins every record.
type header struct {
	Version int `json:"version"`
}

func (h header) version() int { return h.Version }

type versioned interface{ version() int }

// imageRecord is images/<id>.json. Manifest and Config are kept as text, byte for
// byte, since digests are over bytes.
type imageRecord struct {
	header
	ID        digest.Digest   `json:"id"`     // of Config
	Digest    digest.Digest   `json:"digest"` // of Manifest
	MediaType string          `json:"mediaType"`
	DiffIDs   []digest.Digest `json:"diffIDs"` // lowest first, as in Config
	Added     time.Time       `json:"added"`
	Pulled    bool            `json:"pulled,omitempty"` // from a registry, where it can be had again
	Manifest  string          `json:"manifest"`
	Config    string          `json:"config"`
	Index     string          `json:"index,omitempty"` // by which it was had last, for names that it is given
}

// nameRecord is names/<sha256 of Name>.json.
type nameRecord struct {
	header
	Name   string        `json:"name"`
	ID     digest.Digest `json:"id"`
	Digest digest.Digest `json:"digest"`          // of the manifest
	Top    digest.Digest `json:"top"`             // what the name stood for: an index's digest, or Digest
	Index  string        `json:"index,omitempty"` // that index, byte for byte
	Origin string        `json:"origin,omitempty"`
}

// The origins of a name: who is to be asked what it stands for now. An image may have names of
// both. "" is an earlier podrun's, or nobody's: there the image's own word counts.
const (
	fromRegistry = "registry"
	fromMachine  = "machine" // an archive, or the user, has given it
)

// pulled says whether a name's image can be had again from a registry by it. image is the
// image's own word.
func (n *nameRecord) pulled(image bool) bool {
	return n.Origin == fromRegistry || n.Origin == "" && image
}

// pulled says whether an image can be had again from a registry by all of its names.
func (r *imageRecord) pulled(names []*nameRecord) bool {
	any := false
	for _, n := range names {
		if n.ID == r.ID {
			if any = true; !n.pulled(r.Pulled) {
				return false
			}
		}
	}
	return any || r.Pulled
}

// layerRecord is layers/<diffid>/layer.json.
type layerRecord struct {
	header
	DiffID     digest.Digest `json:"diffID"`
	Size       int64         `json:"size"` // bytes of the tar stream
	OpaqueRoot bool          `json:"opaqueRoot,omitempty"`
	Boot       string        `json:"boot,omitempty"` // of the machine, in which it was stored: see sound.go
	Unpacked
}

// Unpacked counts what a layer has become on disk.
type Unpacked struct {
	Entries  int   `json:"entries"`            // of the tar stream
	Bytes    int64 `json:"bytes"`              // of regular files
	Squashed int   `json:"squashed,omitempty"` // files whose owner is not mapped and became 0
	Devices  int   `json:"devices,omitempty"`  // device nodes left out
}

// imageFile is the record of an image.
func (s *recordStore) imageFile(id digest.Digest) string {
	return filepath.Join(s.dir, imagesDir, id.Encoded()+".json")
}

// nameFile is the record of a name.
func (s *recordStore) nameFile(name string) string {
	return filepath.Join(s.dir, namesDir, digest.FromString(name).Encoded()+".json")
}

// layerDir is the directory of a layer.
func (s *recordStore) layerDir(diffID digest.Digest) string {
	return filepath.Join(s.dir, layersDir, diffID.Encoded())
}

// layerFS is the overlay's lower directory inside a layer's directory.
const layerFS = "fs"

const layerFile = "layer.json"

// readImage reads the record of an image.
func (s *recordStore) readImage(id digest.Digest) (*imageRecord, error) {
	r, err := readRecord[imageRecord](s.imageFile(id))
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", id, err)
	}
	return r, nil
}

// readName reads the record of a name.
func (s *recordStore) readName(name string) (*nameRecord, error) {
	r, err := readRecord[nameRecord](s.nameFile(name))
	if err != nil {
		return nil, fmt.Errorf("read name %s: %w", name, err)
	}
	return r, nil
}

// readLayer reads the record of a layer. It is an error if the layer is marked as damaged.
func (s *recordStore) readLayer(diffID digest.Digest) (*layerRecord, error) {
	r, err := readRecord[layerRecord](filepath.Join(s.layerDir(diffID), layerFile))
	if err != nil {
		return nil, fmt.Errorf("read layer %s: %w", diffID, err)
	}
	if why, err := os.ReadFile(s.damageFile(diffID)); err == nil {
		return nil, fmt.Errorf("layer %s is damaged: %s", diffID, why)
	}
	return r, nil
}

// images reads every image record. Those that can be read are returned with an error too.
func (s *recordStore) images() ([]*imageRecord, error) {
	return listRecords[imageRecord](filepath.Join(s.dir, imagesDir))
}

// names reads every name record, as images does.
func (s *recordStore) names() ([]*nameRecord, error) {
	return listRecords[nameRecord](filepath.Join(s.dir, namesDir))
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
		r, err := readRecord[T](filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			list = append(list, r)
		case !os.IsNotExist(err): // else removed meanwhile
			errs = append(errs, fmt.Errorf("list images: %w", err))
		}
	}
	return list, errors.Join(errs...)
}

// readRecord reads a record and verifies its checksum and version.
func readRecord[T versioned](path string) (*T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(T)
	err = checkSeal(b)
	if err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, report.New(report.Failure, "remove it, then pull or load its image again", "%s is damaged: %w", path, err)
	}
	if v := (*r).version(); v < 1 || v > recordVersion {
		return nil, fmt.Errorf("%s: version %d was not written by this podrun", path, v)
	}
	return r, nil
}

// writeRecord writes a record with its checksum, durably.
func writeRecord(path string, r any) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.WriteFile(path, sealed(b))
}

// config decodes the image's config.
func (r *imageRecord) config() (*v1.Image, error) {
	var c v1.Image
	if err := json.Unmarshal([]byte(r.Config), &c); err != nil {
		return nil, fmt.Errorf("read config of image %s: %w", r.ID, err)
	}
	return &c, nil
}
