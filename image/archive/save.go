package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
)

// The annotations of an image in an archive of podrun: the manifest by whose digest it was pulled, and the
// index that contains it. Other programs read a manifest with another digest, because it lists compressed
// layers. With the annotations image@digest names the image wherever the archive is loaded. They are
// accepted only if their digests lead to the same config.
const (
	manifestAnnotation = "dev.podrun.image.manifest"
	indexAnnotation    = "dev.podrun.image.index"
)

// Save writes images to w, or for OCIDir to a directory, under the names that refs gives. The same images
// give the same bytes. Layers are rebuilt from their unpacked files and compared with their digests: damaged
// layers are not saved.
func (s *Archiver) Save(ctx context.Context, refs []string, to Target, o api.SaveOptions) error {
	hold, err := s.Lease()
	if err != nil {
		return err
	}
	defer hold.Close()
	list, err := savedImages(s.Store, refs)
	if err != nil {
		return err
	}
	w := &saver{s: s.Ingester, ctx: ctx, to: to, o: o, written: map[digest.Digest]v1.Descriptor{}}
	for _, i := range list {
		if err := w.image(i); err != nil {
			return fmt.Errorf("save %s: %w", i.requested, err)
		}
	}
	if err := w.end(); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// savedImage is one image with the names to write.
type savedImage struct {
	requested string
	rec       *records.Image
	names     []records.Name // the names in refs; none if refs has its id
}

// savedImages finds images. An image that is named twice is returned once.
func savedImages(s *records.Store, refs []string) ([]*savedImage, error) {
	var list []*savedImage
	for _, ref := range refs {
		id, name, err := s.Find(ref)
		if err != nil {
			return nil, fmt.Errorf("save %s: %w", ref, err)
		}
		i := slices.IndexFunc(list, func(i *savedImage) bool { return i.rec.ID == id })
		if i < 0 {
			rec, err := s.ReadImage(id)
			if err != nil {
				return nil, err
			}
			i = len(list)
			list = append(list, &savedImage{requested: ref, rec: rec})
		}
		if name != "" && !slices.ContainsFunc(list[i].names, func(n records.Name) bool { return n.Name == name }) {
			rec, err := s.ReadName(name)
			if err != nil {
				return nil, err
			}
			list[i].names = append(list[i].names, *rec)
		}
	}
	return list, nil
}

// saver writes one archive.
type saver struct {
	s       *ingest.Ingester
	ctx     context.Context
	to      Target
	o       api.SaveOptions
	written map[digest.Digest]v1.Descriptor // blobs by their digest, layers by their diffID
	index   v1.Index
	docker  []dockerImage
}

func (w *saver) image(i *savedImage) error {
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Layers: []v1.Descriptor{}}
	var err error
	if m.Config, err = w.blob(v1.MediaTypeImageConfig, []byte(i.rec.Config)); err != nil {
		return err
	}
	d := dockerImage{Config: blobPath(m.Config.Digest)}
	for _, id := range i.rec.DiffIDs {
		layer, err := w.layer(i.requested, id)
		if err != nil {
			return err
		}
		m.Layers = append(m.Layers, layer)
		d.Layers = append(d.Layers, blobPath(layer.Digest))
	}
	for _, n := range i.names {
		if strings.Contains(n.Name, "@") { // by digest, which docker's format cannot express
			continue
		}
		if named, err := reference.Parse(n.Name); err == nil {
			d.RepoTags = append(d.RepoTags, named.Familiar())
		}
	}
	w.docker = append(w.docker, d)
	if w.o.Format == api.DockerArchive {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	desc, err := w.blob(v1.MediaTypeImageManifest, raw)
	if err != nil {
		return err
	}
	return w.indexEntries(desc, i)
}

// indexEntries adds an image to the index: once for each name.
func (w *saver) indexEntries(desc v1.Descriptor, i *savedImage) error {
	if _, err := w.blob(i.rec.MediaType, []byte(i.rec.Manifest)); err != nil {
		return err
	}
	names := i.names
	if len(names) == 0 {
		names = []records.Name{{}}
	}
	for _, n := range names {
		d := desc
		d.Annotations = map[string]string{manifestAnnotation: i.rec.Digest.String()}
		if n.Name != "" {
			d.Annotations["io.containerd.image.name"] = n.Name
			d.Annotations[v1.AnnotationRefName] = n.Name
		}
		if n.Index != "" {
			index, err := w.blob(v1.MediaTypeImageIndex, []byte(n.Index))
			if err != nil {
				return err
			}
			d.Annotations[indexAnnotation] = index.Digest.String()
		}
		w.index.Manifests = append(w.index.Manifests, d)
	}
	return nil
}

// blob writes a small blob once.
func (w *saver) blob(mediaType string, b []byte) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	if _, ok := w.written[d.Digest]; ok {
		return d, nil
	}
	w.written[d.Digest] = d
	return d, w.to.file(blobPath(d.Digest), d.Size, bytes.NewReader(b))
}

// layer writes a layer once.
func (w *saver) layer(requested string, id digest.Digest) (v1.Descriptor, error) {
	if d, ok := w.written[id]; ok {
		return d, nil
	}
	rec, err := integrity.ReadChecked(w.s.Store, id)
	if err != nil {
		return v1.Descriptor{}, err
	}
	report := func(status api.Status, done int64) {
		if w.o.Progress != nil {
			w.o.Progress(api.Progress{Image: requested, Layer: id.String(), Status: status, Done: done, Total: rec.Size})
		}
	}
	d := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: id, Size: rec.Size}
	write := func(r io.Reader) error { return w.to.file(blobPath(id), rec.Size, r) }
	if w.o.Compress != "" {
		d.MediaType += "+" + w.o.Compress
		write = func(r io.Reader) (err error) {
			d.Digest, d.Size, err = w.compressed(r)
			return err
		}
	}
	if err := integrity.StreamLayer(w.ctx, w.s.Store, rec, write, func(n int64) { report(api.Fetching, n) }); err != nil {
		return d, fmt.Errorf("layer %s: %w", id, err)
	}
	report(api.Done, rec.Size)
	w.written[id] = d
	return d, nil
}

// compressed writes a compressed layer. An archive has the size before the content, so the layer is
// compressed into a scratch file first.
func (w *saver) compressed(r io.Reader) (digest.Digest, int64, error) {
	tmp, err := w.to.scratch()
	if err != nil {
		return "", 0, err
	}
	defer tmp.Close()
	sum := digest.SHA256.Digester()
	if err := layer.Compress(io.MultiWriter(tmp, sum.Hash()), r, w.o.Compress); err != nil {
		return "", 0, err
	}
	n, err := tmp.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = tmp.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", 0, err
	}
	return sum.Digest(), n, w.to.file(blobPath(sum.Digest()), n, tmp)
}

// end writes the files that list the images.
func (w *saver) end() error {
	files := map[string]any{}
	if w.o.Format != api.OCIDir { // docker load reads it in an OCI archive too
		files["manifest.json"] = w.docker
	}
	if w.o.Format != api.DockerArchive {
		w.index.Versioned, w.index.MediaType = specs.Versioned{SchemaVersion: 2}, v1.MediaTypeImageIndex
		old, err := w.to.existing()
		if err != nil {
			return err
		}
		for _, d := range old {
			same := func(n v1.Descriptor) bool {
				return layoutName(n) == layoutName(d) && (layoutName(n) != "" || n.Digest == d.Digest)
			}
			if !slices.ContainsFunc(w.index.Manifests, same) {
				w.index.Manifests = append(w.index.Manifests, d)
			}
		}
		files[v1.ImageLayoutFile], files[v1.ImageIndexFile] = v1.ImageLayout{Version: v1.ImageLayoutVersion}, w.index
	}
	for _, name := range []string{v1.ImageLayoutFile, "manifest.json", v1.ImageIndexFile} { // the files that make it an image are last
		v, ok := files[name]
		if !ok {
			continue
		}
		b, err := json.Marshal(v)
		if err == nil {
			err = w.to.file(name, int64(len(b)), bytes.NewReader(b))
		}
		if err != nil {
			return err
		}
	}
	return w.to.end()
}
