package image

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/types"

	"github.com/podrun/podrun/internal/report"
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
	// Warn, if not nil, is called with the reason why a copy at hand is used though the
	// registry was to be asked.
	Warn func(error)
	// Asked, if not nil, is called before a registry is asked.
	Asked func()
	// Progress, if not nil, is told about every layer.
	Progress func(Progress)
	// Here asks no registry: where one would be asked, the error is ErrElsewhere.
	Here bool
}

// registryClient adds images from registries.
type registryClient struct {
	*ingestStore
	policyChecker
	conf types.SystemContext // where registries.conf and the like are; zero: in their usual places
}

// newRegistryClient adds images to s, with the configuration files in their usual places.
func newRegistryClient(s *recordStore) *registryClient {
	return &registryClient{newIngestStore(s, func(err error) bool { return passing(err) || unreachable(err) }), usualPolicy(), usualConf()}
}

// pullImage fetches an image from its registry. Layers that are in the
// store are not fetched; an image that is there whole costs its manifest only.
// Mirrors, blocked registries and short names are those of registries.conf(5), and
// policy.json(5) says which images may be had. What was fetched of a layer before the
// pull was cut off is kept, and the next one goes on from there. Errors have reason
// ErrImagePull, InvalidImageName or SignatureValidationFailed.
func (s *registryClient) pullImage(ctx context.Context, ref string, o PullOptions) (added, error) {
	if _, isID := parseID(ref); isID {
		return added{}, &Error{InvalidImageName, ref, report.New(report.Usage, "pull it by name", "pull %s: an image id cannot be pulled", ref)}
	}
	names, err := s.chosen(ref)
	if err != nil {
		return added{}, err
	}
	if o.Asked != nil {
		o.Asked()
	}
	var errs []error
	for _, name := range names {
		img, err := s.pull(ctx, name, ref, o)
		if err == nil {
			return img, nil
		}
		reason := cmp.Or(Reason(err), ErrImagePull)
		errs = append(errs, &Error{reason, ref, explain(fmt.Errorf("pull %s: %w", reference.FamiliarString(name), err))})
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return added{}, errs[0]
	}
	return added{}, &Error{ErrImagePull, ref, errors.Join(errs...)}
}

func (s *registryClient) pull(ctx context.Context, name reference.Named, asked string, o PullOptions) (added, error) {
	a, err := s.begin(ctx, o.Progress)
	if err != nil {
		return added{}, err
	}
	defer a.end()
	if err := s.dropPartials(partialAge); err != nil {
		return added{}, err
	}
	src, c, err := s.inquire(ctx, name, o)
	if err != nil {
		return added{}, err
	}
	defer src.image.Close()
	if d, ok := name.(reference.Digested); ok && d.Digest() != c.top {
		return added{}, fmt.Errorf("read manifest: it is %s instead of %s", c.top, d.Digest())
	}
	c.pulled = true
	names := []string{name.String()}
	if o.Unnamed {
		names = nil
	}
	return a.add(ctx, c, asked, names)
}

// explain adds the cure to errors that have a usual one.
func explain(err error) error {
	var certificate *tls.CertificateVerificationError
	hint := ""
	switch {
	case report.Hint(err) != "":
		return err
	case denied(err):
		hint = "there is no such image, or it needs credentials: podrun login HOST, which keeps them in auth.json"
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
