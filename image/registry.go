package image

import (
	"context"
	"io"
	"os"

	"github.com/containers/image/v5/docker"
	"github.com/containers/image/v5/docker/reference"
	copied "github.com/containers/image/v5/image"
	"github.com/containers/image/v5/pkg/blobinfocache/none"
	"github.com/containers/image/v5/types"
	"github.com/opencontainers/go-digest"
)

// inquire reads an image's manifest and config. A registry that is busy or breaks off is
// asked again a few times; one that nobody answers for is not.
func (s *registryClient) inquire(ctx context.Context, name reference.Named, o PullOptions) (*registry, *candidate, error) {
	for attempt := 0; ; attempt++ {
		src, c, err := s.inquireOnce(ctx, name, o)
		if err == nil || ctx.Err() != nil || !passing(err) || unreachable(err) || attempt == len(s.patience.ask) {
			return src, c, err
		}
		if err := pause(ctx, s.patience.ask[attempt]); err != nil {
			return nil, nil, err
		}
	}
}

// system is what the library has to know to speak to a registry.
func system(sys types.SystemContext, o PullOptions) *types.SystemContext {
	sys.OSChoice, sys.AuthFilePath, sys.DockerRegistryUserAgent = "linux", o.AuthFile, "podrun"
	if o.AuthFile == "" {
		sys.AuthFilePath = authFile(os.Geteuid(), os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR"), func(path string) error {
			_, err := os.Stat(path)
			return err
		})
	}
	if o.TLSVerify != nil {
		sys.DockerInsecureSkipTLSVerify = types.NewOptionalBool(!*o.TLSVerify)
	}
	return &sys
}

func (s *registryClient) inquireOnce(ctx context.Context, name reference.Named, o PullOptions) (*registry, *candidate, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience.answer, errStalled)
	defer cancel()
	src, err := s.logIn(ctx, name, o)
	if err != nil {
		return nil, nil, causeOf(ctx, err)
	}
	c, err := fetch(ctx, src, s.knownConfig)
	if err != nil {
		src.image.Close()
		return nil, nil, causeOf(ctx, err)
	}
	src.free()
	return src, c, nil
}

// registry is the source of an image in a registry.
type registry struct {
	image types.ImageSource
	judge func(context.Context, types.UnparsedImage) error
	free  func() // ends the bound of what it may send
}

// logIn opens the registry with the first of the logins for the image that it takes, else
// with those of the auth file, else with none.
func (s *registryClient) logIn(ctx context.Context, name reference.Named, o PullOptions) (*registry, error) {
	for _, as := range loginsFor(name, o.Logins) {
		src, err := s.openRegistry(ctx, name, o, &as)
		if err == nil || !denied(err) {
			return src, err
		}
	}
	return s.openRegistry(ctx, name, o, nil)
}

// openRegistry opens it as somebody, or, if that is nil, with what the auth file has.
func (s *registryClient) openRegistry(ctx context.Context, name reference.Named, o PullOptions, as *types.DockerAuthConfig) (*registry, error) {
	sys := system(s.conf, o)
	sys.DockerAuthConfig = as
	if o.TLSVerify == nil && loopback(name) {
		sys.DockerInsecureSkipTLSVerify = types.OptionalBoolTrue
	}
	ref, err := docker.NewReference(name)
	if err != nil {
		return nil, err
	}
	hosts, err := registryHosts(sys, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := guarded(ctx, hosts)
	defer cancel(nil)
	src, err := ref.NewImageSource(ctx, sys)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	free, err := harden(src)
	if err != nil {
		src.Close()
		return nil, err
	}
	return &registry{src, s.allowed, free}, nil
}

func (r *registry) manifest(ctx context.Context, d digest.Digest) ([]byte, string, error) {
	if d == "" {
		return r.image.GetManifest(ctx, nil)
	}
	return r.image.GetManifest(ctx, &d)
}

// blob asks the registry alone: the URLs that a manifest may give for a layer are
// not followed.
func (r *registry) blob(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, error) {
	rc, _, err := r.image.GetBlob(ctx, types.BlobInfo{Digest: d, Size: size}, none.NoCache)
	return rc, err
}

func (r *registry) blobFrom(ctx context.Context, d digest.Digest, size, offset int64) (io.ReadCloser, error) {
	rc, err := blobFrom(ctx, r.image, d, size, offset)
	if err != nil && offset == 0 && ctx.Err() == nil && !passing(err) { // it does not like ranges, or has no such blob
		return r.blob(ctx, d, size)
	}
	return rc, err
}

// allowed judges the image in a registry whose manifest has this digest; "" is the
// one that the name stands for.
func (r *registry) allowed(ctx context.Context, d digest.Digest) error {
	instance := &d
	if d == "" {
		instance = nil
	}
	return r.judge(ctx, copied.UnparsedInstance(r.image, instance))
}
