package registry

import (
	"context"
	"io"
	"os"

	"github.com/containers/image/v5/docker"
	library "github.com/containers/image/v5/docker/reference"
	copied "github.com/containers/image/v5/image"
	"github.com/containers/image/v5/pkg/blobinfocache/none"
	"github.com/containers/image/v5/types"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/credentials"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/ingest"
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
	src.unlimit()
	return src, c, nil
}

// registrySource is the source of an image in a registry.
type registrySource struct {
	image       types.ImageSource
	checkPolicy func(context.Context, types.UnparsedImage) error
	unlimit     func() // removes the limit of received bytes
}

// openWithLogins opens the registry with the first of the logins for the image that it accepts, else with
// those of the auth file, else with none.
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
	ctx, cancel := guardCredentials(ctx, r.hosts)
	defer cancel(nil)
	src, err := r.ref.NewImageSource(ctx, r.sys)
	if err != nil {
		return nil, download.Cause(ctx, err)
	}
	free, err := restrictClient(src)
	if err != nil {
		src.Close()
		return nil, err
	}
	return &registrySource{src, s.Check, free}, nil
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
	if d == "" {
		return r.image.GetManifest(ctx, nil)
	}
	return r.image.GetManifest(ctx, &d)
}

// Blob reads from the registry only: the URLs that a manifest may give for a layer are not followed.
func (r *registrySource) Blob(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, error) {
	rc, _, err := r.image.GetBlob(ctx, types.BlobInfo{Digest: d, Size: size}, none.NoCache)
	return rc, err
}

func (r *registrySource) BlobFrom(ctx context.Context, d digest.Digest, size, offset int64) (io.ReadCloser, error) {
	rc, err := openBlobAt(ctx, r.image, d, size, offset)
	if err != nil && offset == 0 && ctx.Err() == nil && !isTemporary(err) { // the registry does not support ranges, or has no such blob
		return r.Blob(ctx, d, size)
	}
	return rc, err
}

// Allowed checks by policy the image in a registry whose manifest has this digest; "" is the one that the
// name stands for.
func (r *registrySource) Allowed(ctx context.Context, d digest.Digest) error {
	instance := &d
	if d == "" {
		instance = nil
	}
	return r.checkPolicy(ctx, copied.UnparsedInstance(r.image, instance))
}
