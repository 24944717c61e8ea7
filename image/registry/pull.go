package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/policy"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// Client adds images from registries.
type Client struct {
	*ingest.Ingester
	policy.Checker
	Config types.SystemContext // the paths of registries.conf and the like; zero: the usual paths
}

// NewClient returns a Client that adds images to s, with the configuration files in their usual locations.
func NewClient(s *records.Store) *Client {
	return &Client{ingest.New(s, func(err error) bool { return isTemporary(err) || isUnreachable(err) }), policy.Default(), systemConfig()}
}

// Pull fetches an image from its registry. Layers in the store are not fetched again; for a complete image
// only the manifest is fetched. registries.conf(5) configures mirrors, blocked registries and short names,
// and policy.json(5) decides which images are allowed. The fetched part of a layer is kept when a pull is
// interrupted, and the next pull continues from there. Errors have reason ErrImagePull, InvalidImageName or
// SignatureValidationFailed.
func (s *Client) Pull(ctx context.Context, ref string, o api.PullOptions) (api.Added, error) {
	if _, isID := records.ParseID(ref); isID {
		return api.Added{}, &api.Error{Reason: api.InvalidImageName, Image: ref, Err: report.New(report.Usage, "pull it by name", "pull %s: an image id cannot be pulled", ref)}
	}
	names, err := s.ResolveShortName(ref)
	if err != nil {
		return api.Added{}, err
	}
	if o.BeforePull != nil {
		o.BeforePull()
	}
	var errs []error
	for _, name := range names {
		img, err := s.pullFrom(ctx, name, ref, o)
		if err == nil {
			return img, nil
		}
		reason := cmp.Or(api.Reason(err), api.ErrImagePull)
		errs = append(errs, &api.Error{Reason: reason, Image: ref, Transient: isTransient(err), Err: addHint(fmt.Errorf("pull %s: %w", name.Familiar(), err))})
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return api.Added{}, errs[0]
	}
	all := errors.Join(errs...)
	return api.Added{}, &api.Error{Reason: api.ErrImagePull, Image: ref, Transient: isTransient(all), Err: all}
}

func (s *Client) pullFrom(ctx context.Context, name reference.Name, requested string, o api.PullOptions) (api.Added, error) {
	a, err := s.Begin(ctx, o.Progress)
	if err != nil {
		return api.Added{}, err
	}
	defer a.End()
	if err := s.RemovePartials(download.PartialAge); err != nil {
		return api.Added{}, err
	}
	src, c, err := s.readManifest(ctx, name, o)
	if err != nil {
		return api.Added{}, err
	}
	defer src.image.Close()
	if name.Digest != "" && name.Digest != c.Top {
		return api.Added{}, fmt.Errorf("read manifest: it is %s instead of %s", c.Top, name.Digest)
	}
	c.Pulled = true
	names := []string{name.String()}
	if o.NoName {
		names = nil
	}
	return a.Add(ctx, c, requested, names)
}

// addHint adds the usual hint to an error, if there is one.
func addHint(err error) error {
	var certificate *tls.CertificateVerificationError
	hint := ""
	switch {
	case report.Hint(err) != "":
		return err
	case isDenied(err):
		hint = "the image does not exist, or requires credentials: podrun login HOST stores them in auth.json"
	case strings.Contains(err.Error(), "StatusCode: 404"): // the answer to a HEAD has no reason
		hint = "the registry has no image of this name"
	case errors.Is(err, http.ErrSchemeMismatch):
		hint = "the registry speaks plain HTTP: --tls-verify=false, or insecure = true in registries.conf"
	case errors.As(err, &certificate):
		hint = "put the registry's CA into /etc/containers/certs.d/HOST:PORT/ca.crt, or use --tls-verify=false"
	default:
		return err
	}
	return report.New(report.Failure, hint, "%w", err)
}

// isDenied reports whether a registry requires a login. The client's errors for that have several types and
// common words.
func isDenied(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"unauthorized", "authentication required", "is denied", "status code 403"},
		func(word string) bool { return strings.Contains(text, word) })
}
