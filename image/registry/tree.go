package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// PushTree writes the files of a directory to a registry under the name to, as an artifact in Flux's layout (fluxcd/pkg:
// oci/client.go): one layer, a compressed tar stream. The files in files have other contents than in the directory. It returns
// REPOSITORY@DIGEST of the manifest there. The same files give the same layer.
func (s *Client) PushTree(ctx context.Context, dir, to string, annotations map[string]string, files map[string][]byte, o api.PullOptions) (string, error) {
	name, err := pushName("", to)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	stream, err := packTree(dir, files)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	var blob bytes.Buffer
	compressed := gzip.NewWriter(&blob)
	_, err = compressed.Write(stream)
	if err == nil {
		err = compressed.Close()
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", dir, err)
	}
	config, err := json.Marshal(v1.Image{RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(stream)}}})
	if err != nil {
		return "", err
	}
	describe := func(mediaType string, content []byte) v1.Descriptor {
		return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	}
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Annotations: annotations,
		Config: describe(api.FluxArtifact, config), Layers: []v1.Descriptor{describe(api.FluxContent, blob.Bytes())},
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	err = s.pushing(ctx, dir, name, o, func(p *pusher) error {
		if err := p.put(m.Layers[0], &blob, false); err != nil {
			return err
		}
		if err := p.put(m.Config, bytes.NewReader(config), true); err != nil {
			return err
		}
		return p.to.PutManifest(p.ctx, raw, nil)
	})
	if err != nil {
		return "", fmt.Errorf("push %s to %s: %w", dir, name.Familiar(), pushError(err, name))
	}
	return name.Repository() + "@" + digest.FromBytes(raw).String(), nil
}

// packTree returns a tar stream of the files of a directory, without .git, and with the contents in replaced. The stream has
// no owners and times.
func packTree(dir string, replaced map[string][]byte) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	files := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
		case !entry.Type().IsRegular():
			return report.New(report.Usage, "replace it by a file", "%s is not a regular file: an artifact has only files and directories", name)
		}
		files++
		left := api.MaxArtifact - int64(stream.Len())
		if text, ok := replaced[name]; ok {
			return addTreeFile(w, name, bytes.NewReader(text), int64(len(text)), left)
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		return addTreeFile(w, name, f, st.Size(), left)
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil && files == 0 {
		err = report.New(report.Usage, "", "there are no files in it")
	}
	return stream.Bytes(), err
}

// addTreeFile writes a file of at most limit bytes.
func addTreeFile(w *tar.Writer, name string, content io.Reader, size, limit int64) error {
	if size > limit {
		return report.New(report.Usage, "", "%s: the files of an artifact may have %d MiB together", name, api.MaxArtifact>>20)
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := io.CopyN(w, content, size)
	return err
}
