package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// Push writes an image of the store to a registry under the name to, or its own name if to is "". It returns
// REPOSITORY@DIGEST of the manifest there. Blobs that the repository has are not sent again. If it has the
// layers that the image was pulled with, the image keeps its manifest; otherwise layers are rebuilt from
// their files and compressed, which gives a manifest with another digest and the same image ID.
func (s *Client) Push(ctx context.Context, ref, to string, o api.PullOptions) (string, error) {
	hold, err := s.Lease()
	if err != nil {
		return "", err
	}
	defer hold.Close()
	id, stored, err := s.Find(ref)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	name, err := pushName(stored, to)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	image, err := s.ReadImage(id)
	if err != nil {
		return "", err
	}
	config, err := image.DecodeConfig()
	if err != nil {
		return "", err
	}
	if kind := config.Config.Labels[records.ArtifactLabel]; kind != "" {
		return "", report.New(report.Usage, "oras copy copies it between registries", "push %s: it is an OCI artifact of type %q; only container images are pushed", ref, kind)
	}
	var raw []byte
	err = s.pushing(ctx, ref, name, o, func(p *pusher) (err error) {
		if raw, err = p.blobs(image); err != nil {
			return err
		}
		return p.to.PutManifest(p.ctx, raw, nil)
	})
	if err != nil {
		return "", fmt.Errorf("push %s to %s: %w", ref, name.Familiar(), pushError(err, name))
	}
	return name.Repository() + "@" + digest.FromBytes(raw).String(), nil
}

// pushError adds the hint of a failed push to its error.
func pushError(err error, name reference.Name) error {
	if isDenied(err) {
		return report.New(report.Failure, "podrun login "+name.Domain+" stores credentials; they must allow a push to this repository", "%w", err)
	}
	return addHint(err)
}

// pushName returns the name to push to; stored is the image's name, or "".
func pushName(stored, to string) (reference.Name, error) {
	if to == "" && stored == "" {
		return reference.Name{}, report.New(report.Usage, "podrun image push ID REGISTRY/NAME:TAG", "an image id needs a name to be pushed to")
	}
	if to == "" {
		to = stored
	}
	name, err := records.ParseName(strings.TrimPrefix(to, "docker://"))
	switch {
	case err != nil:
		return name, err
	case name.Digest != "":
		return name, report.New(report.Usage, "use REGISTRY/NAME:TAG", "%s has a digest: the content determines the digest of a pushed image", to)
	case name.Domain == "localhost":
		return name, report.New(report.Usage, "podrun image push IMAGE REGISTRY/NAME:TAG", "%s is a name of this machine only", name.Familiar())
	}
	return name, nil
}

// pusher writes one image to a registry. Its requests come one after another.
type pusher struct {
	*Client
	ctx       context.Context
	guard     *credentialGuard
	to        types.ImageDestination
	requested string
	progress  func(api.Progress)
	alive     *time.Timer // cancels ctx when nothing was sent for a while
}

// pushing calls write with the destination of a name.
func (s *Client) pushing(ctx context.Context, requested string, name reference.Name, o api.PullOptions, write func(*pusher) error) error {
	destination, err := s.address(name, o)
	if err != nil {
		return err
	}
	guard := newGuard(destination.hosts)
	guard.unlimit()
	ctx, cancel := guard.watch(ctx)
	defer cancel(nil)
	to, err := destination.ref.NewImageDestination(ctx, destination.sys)
	if err != nil {
		return err
	}
	defer to.Close()
	p := &pusher{Client: s, ctx: ctx, guard: guard, to: to, requested: requested, progress: o.Progress}
	p.alive = time.AfterFunc(s.Retry.AnswerTimeout, func() { cancel(download.ErrStalled) })
	defer p.alive.Stop()
	if err := write(p); err != nil {
		return download.Cause(ctx, err)
	}
	return nil
}

// blobs writes the config and the layers, and returns the manifest.
func (p *pusher) blobs(image *records.Image) ([]byte, error) {
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: image.ID, Size: int64(len(image.Config))}}
	if _, err := p.has(m.Config); err != nil {
		return nil, err
	}
	var old v1.Manifest // a docker manifest has the same fields
	if err := json.Unmarshal([]byte(image.Manifest), &old); err != nil {
		return nil, fmt.Errorf("read manifest of image %s: %w", image.ID, err)
	}
	same := len(old.Layers) == len(image.DiffIDs)
	sent := map[digest.Digest]v1.Descriptor{}
	for i, id := range image.DiffIDs {
		if len(old.Layers) == len(image.DiffIDs) {
			there, err := p.has(old.Layers[i])
			if err != nil {
				return nil, err
			}
			if there {
				p.report(id, api.Exists, 0, old.Layers[i].Size)
				m.Layers = append(m.Layers, asOCI(old.Layers[i]))
				continue
			}
		}
		same = false
		if _, ok := sent[id]; !ok {
			var err error
			if sent[id], err = p.layer(id); err != nil {
				return nil, fmt.Errorf("layer %s: %w", id, err)
			}
		}
		m.Layers = append(m.Layers, sent[id])
	}
	if err := p.put(m.Config, strings.NewReader(image.Config), true); err != nil {
		return nil, err
	}
	if same {
		return []byte(image.Manifest), nil
	}
	return json.Marshal(m)
}

// asOCI returns the descriptor of a layer in the media types of OCI.
func asOCI(d v1.Descriptor) v1.Descriptor {
	kind := v1.MediaTypeImageLayer
	for _, method := range []string{"gzip", "zstd"} {
		if strings.HasSuffix(d.MediaType, method) {
			kind += "+" + method
		}
	}
	return v1.Descriptor{MediaType: kind, Digest: d.Digest, Size: d.Size}
}

// layer compresses a layer into an unnamed file, and sends it unless the repository has it.
func (p *pusher) layer(id digest.Digest) (d v1.Descriptor, err error) {
	rec, err := integrity.ReadChecked(p.Store, id)
	if err != nil {
		return d, err
	}
	file, err := os.CreateTemp(filepath.Join(p.Dir, records.StagingDir), "push-*")
	if err != nil {
		return d, err
	}
	defer file.Close()
	os.Remove(file.Name())
	p.alive.Stop() // nothing is sent meanwhile
	p.report(id, api.Waiting, 0, -1)
	sum := digest.SHA256.Digester()
	compress := func(r io.Reader) error { return layer.Compress(io.MultiWriter(file, sum.Hash()), r, "gzip") }
	if err := integrity.StreamLayer(p.ctx, p.Store, rec, compress, func(int64) {}); err != nil {
		return d, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return d, err
	}
	d = v1.Descriptor{MediaType: v1.MediaTypeImageLayer + "+gzip", Digest: sum.Digest(), Size: size}
	if err := p.put(d, &sender{file, p, id, size, 0}, false); err != nil {
		return d, err
	}
	p.report(id, api.Done, size, size)
	return d, nil
}

// has reports whether the repository has a blob. If the registry redirects the question to an address that must not
// get its login, the answer is no.
func (p *pusher) has(d v1.Descriptor) (bool, error) {
	p.alive.Reset(p.Retry.AnswerTimeout)
	ctx, cancel := p.guard.watch(p.ctx)
	defer cancel(nil)
	there, _, err := p.to.TryReusingBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size}, none.NoCache, false)
	if errors.As(context.Cause(ctx), new(*refusedLogin)) {
		return false, nil
	}
	return there, err
}

// put sends a blob unless the repository has it.
func (p *pusher) put(d v1.Descriptor, r io.Reader, isConfig bool) error {
	p.alive.Reset(p.Retry.AnswerTimeout)
	info, err := p.to.PutBlob(p.ctx, r, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}, none.NoCache, isConfig)
	p.alive.Reset(p.Retry.AnswerTimeout)
	if err == nil && info.Digest != d.Digest {
		err = errors.New("the registry has stored another blob")
	}
	return err
}

func (p *pusher) report(id digest.Digest, status api.Status, done, total int64) {
	if p.progress != nil {
		p.progress(api.Progress{Image: p.requested, Layer: id.String(), Status: status, Done: done, Total: total})
	}
}

// sender reads a layer that is being sent, and reports the progress after every MiB.
type sender struct {
	io.Reader
	*pusher
	id       digest.Digest
	total, n int64
}

func (s *sender) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if s.n == 0 || s.n>>20 != (s.n+int64(n))>>20 {
		s.report(s.id, api.Fetching, s.n, s.total)
	}
	s.n += int64(n)
	s.alive.Reset(s.Retry.AnswerTimeout)
	return n, err
}
