package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/containers/image/v5/docker"
	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/pkg/blobinfocache/none"
	"github.com/containers/image/v5/types"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// PullOptions say how a registry is spoken to.
type PullOptions struct {
	// TLSVerify false allows plain HTTP and certificates nobody vouches for, true
	// forbids them. nil leaves it to registries.conf, but allows them for a
	// registry on this machine (localhost, 127.0.0.0/8).
	TLSVerify *bool
	// AuthFile has the credentials; "" means the usual ones:
	// $XDG_RUNTIME_DIR/containers/auth.json, ~/.docker/config.json and so on.
	AuthFile string
	// Logins are texts of auth files. What they have for an image is tried before those
	// of AuthFile.
	Logins [][]byte
	// Unnamed leaves the names as they are: the image is had by its id.
	Unnamed bool
	// Progress, if not nil, is told about every layer.
	Progress func(Progress)
}

// Pull fetches an image from its registry and returns it. Layers that are in the
// store are not fetched; an image that is there whole costs its manifest only.
// Mirrors and blocked registries are those of registries.conf(5). Errors have
// reason ErrImagePull or InvalidImageName.
func (s *Store) Pull(ctx context.Context, ref string, o PullOptions) (pod.Image, error) {
	if _, isID := parseID(ref); isID {
		return pod.Image{}, &Error{InvalidImageName, ref, report.New(report.Usage, "pull it by name", "pull %s: an image id cannot be pulled", ref)}
	}
	name, err := parseName(ref)
	if err != nil {
		return pod.Image{}, err
	}
	img, err := s.pull(ctx, name, ref, o)
	if err != nil {
		return pod.Image{}, &Error{ErrImagePull, ref, explain(fmt.Errorf("pull %s: %w", reference.FamiliarString(name), err))}
	}
	return img, nil
}

func (s *Store) pull(ctx context.Context, name reference.Named, asked string, o PullOptions) (pod.Image, error) {
	a, err := s.begin(ctx, o.Progress)
	if err != nil {
		return pod.Image{}, err
	}
	defer a.end()
	src, err := logIn(ctx, name, o)
	if err != nil {
		return pod.Image{}, err
	}
	defer src.image.Close()
	c, err := fetch(ctx, src, s.knownConfig)
	if err != nil {
		return pod.Image{}, err
	}
	if d, ok := name.(reference.Digested); ok && d.Digest() != c.top {
		return pod.Image{}, fmt.Errorf("read manifest: it is %s instead of %s", c.top, d.Digest())
	}
	names := []string{name.String()}
	if o.Unnamed {
		names = nil
	}
	return a.add(ctx, c, asked, names)
}

// registry is the source of an image in a registry.
type registry struct{ image types.ImageSource }

// logIn opens the registry with the first of the logins for the image that it takes, else
// with those of the auth file, else with none.
func logIn(ctx context.Context, name reference.Named, o PullOptions) (*registry, error) {
	for _, as := range loginsFor(name, o.Logins) {
		src, err := openRegistry(ctx, name, o, &as)
		if err == nil || !denied(err) {
			return src, err
		}
	}
	return openRegistry(ctx, name, o, nil)
}

// openRegistry opens it as somebody, or, if that is nil, with what the auth file has.
func openRegistry(ctx context.Context, name reference.Named, o PullOptions, as *types.DockerAuthConfig) (*registry, error) {
	sys := &types.SystemContext{
		OSChoice: "linux", AuthFilePath: o.AuthFile, DockerRegistryUserAgent: "podrun", DockerAuthConfig: as,
	}
	if o.AuthFile == "" {
		sys.AuthFilePath = authFile(os.Geteuid(), os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR"), func(path string) error {
			_, err := os.Stat(path)
			return err
		})
	}
	switch {
	case o.TLSVerify != nil:
		sys.DockerInsecureSkipTLSVerify = types.NewOptionalBool(!*o.TLSVerify)
	case loopback(name):
		sys.DockerInsecureSkipTLSVerify = types.OptionalBoolTrue
	}
	ref, err := docker.NewReference(name)
	if err != nil {
		return nil, err
	}
	src, err := ref.NewImageSource(ctx, sys)
	if err != nil {
		return nil, err
	}
	return &registry{src}, nil
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

// explain adds the cure to errors that have a usual one.
func explain(err error) error {
	var certificate *tls.CertificateVerificationError
	hint := ""
	switch {
	case report.Hint(err) != "":
		return err
	case denied(err):
		hint = "there is no such image, or it needs credentials: put them into ${XDG_RUNTIME_DIR}/containers/auth.json or ~/.docker/config.json"
	case errors.Is(err, http.ErrSchemeMismatch):
		hint = "the registry speaks plain HTTP: --tls-verify=false, or insecure = true in registries.conf"
	case errors.As(err, &certificate):
		hint = "put the registry's CA into /etc/containers/certs.d/HOST:PORT/ca.crt, or use --tls-verify=false"
	default:
		return err
	}
	return report.New(report.Failure, hint, "%w", err)
}

// denied says whether a registry wants to know who asks. The client's errors for
// that have several types and one vocabulary.
func denied(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"unauthorized", "authentication required", "is denied", "status code 403"},
		func(word string) bool { return strings.Contains(text, word) })
}
