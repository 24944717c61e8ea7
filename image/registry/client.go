package registry

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	library "go.podman.io/image/v5/docker/reference"
	copied "go.podman.io/image/v5/image"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/credentials"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/policy"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/sleep"
)

// readManifest reads an image's manifest and config. It retries a few times if the registry is busy or the
// connection breaks, but not if the registry is unreachable.
func (s *Client) readManifest(ctx context.Context, name reference.Name, o api.PullOptions) (*registrySource, *ingest.Candidate, error) {
	for attempt := 0; ; attempt++ {
		src, c, err := s.readManifestOnce(ctx, name, o)
		if err == nil || ctx.Err() != nil || !isTemporary(err) || isUnreachable(err) || attempt == len(s.Retry.ManifestWaits) {
			return src, c, err
		}
		if err := sleep.For(ctx, s.Retry.ManifestWaits[attempt]); err != nil {
			return nil, nil, err
		}
	}
}

// systemContext returns the library's configuration for a registry.
func systemContext(sys types.SystemContext, o api.PullOptions) *types.SystemContext {
	sys.OSChoice, sys.AuthFilePath, sys.DockerRegistryUserAgent = "linux", o.AuthFile, "podrun"
	if o.AuthFile == "" {
		sys.AuthFilePath = defaultAuthFile(os.Geteuid(), os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR"), func(path string) error {
			_, err := os.Stat(path)
			return err
		})
	}
	if o.TLSVerify != nil {
		sys.DockerInsecureSkipTLSVerify = types.NewOptionalBool(!*o.TLSVerify)
	}
	return &sys
}

func (s *Client) readManifestOnce(ctx context.Context, name reference.Name, o api.PullOptions) (*registrySource, *ingest.Candidate, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Retry.AnswerTimeout, download.ErrStalled)
	defer cancel()
	src, err := s.openWithLogins(ctx, name, o)
	if err != nil {
		return nil, nil, download.Cause(ctx, err)
	}
	c, err := ingest.ReadImage(ctx, src, s.ConfigOf)
	if err != nil {
		src.image.Close()
		return nil, nil, download.Cause(ctx, err)
	}
	src.guard.unlimit()
	return src, c, nil
}

// registrySource is the source of an image in a registry.
type registrySource struct {
	image       types.ImageSource
	at          *address
	checkPolicy func(context.Context, types.UnparsedImage, *policy.Referrers) error
	guard       *credentialGuard // of all requests
}

// openWithLogins opens the registry with the first login for the image that it accepts, else with
// the auth file's, else with none.
func (s *Client) openWithLogins(ctx context.Context, name reference.Name, o api.PullOptions) (*registrySource, error) {
	for _, login := range credentials.For(name, o.AuthTexts) {
		as := types.DockerAuthConfig(login)
		src, err := s.openRegistry(ctx, name, o, &as)
		if err == nil || !isDenied(err) {
			return src, err
		}
	}
	return s.openRegistry(ctx, name, o, nil)
}

// openRegistry opens the registry with a login or, if that is nil, with the auth file's.
func (s *Client) openRegistry(ctx context.Context, name reference.Name, o api.PullOptions, as *types.DockerAuthConfig) (*registrySource, error) {
	r, err := s.address(name, o)
	if err != nil {
		return nil, err
	}
	r.sys.DockerAuthConfig = as
	guard := newGuard(r.hosts)
	ctx, cancel := guard.watch(ctx)
	defer cancel(nil)
	src, err := r.ref.NewImageSource(ctx, r.sys)
	if err != nil {
		return nil, download.Cause(ctx, err)
	}
	return &registrySource{src, r, s.Check, guard}, nil
}

// address is an image in a registry in the library's terms.
type address struct {
	sys   *types.SystemContext
	ref   types.ImageReference
	hosts []string // of the registry and its mirrors
}

func (s *Client) address(name reference.Name, o api.PullOptions) (*address, error) {
	sys := systemContext(s.Config, o)
	if o.TLSVerify == nil && records.IsLoopback(name) {
		sys.DockerInsecureSkipTLSVerify = types.OptionalBoolTrue
	}
	named, err := library.ParseNormalizedNamed(name.String())
	if err != nil {
		return nil, err
	}
	ref, err := docker.NewReference(named)
	if err != nil {
		return nil, err
	}
	hosts, err := registryHosts(sys, named)
	return &address{sys, ref, hosts}, err
}

func (r *registrySource) Manifest(ctx context.Context, d digest.Digest) ([]byte, string, error) {
	instance := &d
	if d == "" {
		instance = nil
	}
	ctx, cancel := r.guard.watch(ctx)
	defer cancel(nil)
	raw, mediaType, err := r.image.GetManifest(ctx, instance)
	if err != nil {
		return nil, "", download.Cause(ctx, err)
	}
	return raw, mediaType, nil
}

// Blob reads from the registry only: the URLs that a manifest may give for a layer are not followed.
func (r *registrySource) Blob(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, error) {
	return r.blob(ctx, types.BlobInfo{Digest: d, Size: size}, 0, r.whole)
}

func (r *registrySource) BlobFrom(ctx context.Context, d digest.Digest, size, offset int64) (io.ReadCloser, error) {
	return r.blob(ctx, types.BlobInfo{Digest: d, Size: size}, offset, func(ctx context.Context, info types.BlobInfo) (io.ReadCloser, error) {
		body, err := openBlobAt(ctx, r.image, info, offset)
		if err != nil && offset == 0 && ctx.Err() == nil && !isTemporary(err) { // the registry does not support ranges, or has no such blob
			return r.whole(ctx, info)
		}
		return body, err
	})
}

func (r *registrySource) whole(ctx context.Context, info types.BlobInfo) (io.ReadCloser, error) {
	body, _, err := r.image.GetBlob(ctx, info, none.NoCache)
	return body, err
}

// blob opens a blob at an offset. If the registry redirects the request to an address that must not get its
// login, the blob is read from there without a login, and from its beginning.
func (r *registrySource) blob(ctx context.Context, info types.BlobInfo, offset int64, open func(context.Context, types.BlobInfo) (io.ReadCloser, error)) (io.ReadCloser, error) {
	watched, cancel := r.guard.watch(ctx)
	body, err := open(watched, info)
	if err == nil {
		return &watchedBody{body, watched, cancel}, nil
	}
	cause := download.Cause(watched, err)
	cancel(nil)
	var request *url.Error
	if !errors.As(cause, new(*refusedLogin)) || !errors.As(err, &request) {
		return nil, cause
	}
	info.URLs = []string{request.URL}
	if body, err = r.whole(ctx, info); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, body, offset); err != nil {
		body.Close()
		return nil, err
	}
	return body, nil
}

// watchedBody is a blob that is read from a registry.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = download.Cause(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.cancel(nil) // first: Close may read an endless rest
	return b.ReadCloser.Close()
}

// Allowed checks by policy the image in a registry whose manifest has this digest; "" is the manifest that the
// name stands for. A bundle may sign either, because the one leads to the other by its digest.
func (r *registrySource) Allowed(ctx context.Context, d digest.Digest) error {
	top, _, err := r.Manifest(ctx, "")
	if err != nil {
		return err
	}
	referrers := &policy.Referrers{Digests: []digest.Digest{digest.FromBytes(top)}, Bundles: r.bundles}
	var instance *digest.Digest
	if d != "" {
		instance, referrers.Digests = &d, append(referrers.Digests, d)
	}
	ctx, cancel := r.guard.watch(ctx)
	defer cancel(nil)
	return r.checkPolicy(ctx, copied.UnparsedInstance(r.image, instance), referrers)
}
