package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/pkg/tlsclientconfig"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/policy"
	"github.com/podrun/podrun/internal/report"
)

// maxBundles bounds how many referrers of an image are read.
const maxBundles = 64

// bundles returns the sigstore bundles that refer to a manifest, from the first of the image's sources that has any.
// The library for registries has no request for referrers.
func (r *registrySource) bundles(ctx context.Context, of digest.Digest) (found [][]byte, err error) {
	ctx, cancel := r.guard.watch(ctx)
	defer cancel(nil)
	sources, err := r.at.sources()
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		if found, err = r.bundlesAt(ctx, source, of); len(found) > 0 {
			return found, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
	}
	return nil, err
}

// sources returns where the library looks for an image: its mirrors, and last its own registry.
func (a *address) sources() ([]sysregistriesv2.PullSource, error) {
	named := a.ref.DockerReference()
	r, err := sysregistriesv2.FindRegistry(a.sys, named.Name())
	if err != nil {
		return nil, err
	}
	if r == nil {
		return []sysregistriesv2.PullSource{{Reference: named}}, nil
	}
	return r.PullSourcesFromReference(named)
}

func (r *registrySource) bundlesAt(ctx context.Context, source sysregistriesv2.PullSource, of digest.Digest) ([][]byte, error) {
	transport, err := r.at.transport(source)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	login, err := r.at.login(source.Reference)
	if err != nil {
		return nil, err
	}
	options := []name.Option{}
	if transport.TLSClientConfig.InsecureSkipVerify {
		options = append(options, name.Insecure)
	}
	repository := hostOf(reference.Domain(source.Reference)) + "/" + reference.Path(source.Reference)
	subject, err := name.NewDigest(repository+"@"+of.String(), options...)
	if err != nil {
		return nil, err
	}
	puller, err := remote.NewPuller(remote.WithContext(ctx), remote.WithTransport(limitedTransport{transport}), remote.WithUserAgent("podrun"),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken})))
	if err != nil {
		return nil, err
	}
	index, err := remote.Referrers(subject, remote.WithContext(ctx), remote.Reuse(puller))
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found [][]byte
	list.Manifests = slices.DeleteFunc(list.Manifests, func(d v1.Descriptor) bool {
		// Old registries give the type of an empty config instead of the artifact.
		isBundle := d.ArtifactType == "" || d.ArtifactType == ociv1.MediaTypeEmptyJSON || strings.HasPrefix(d.ArtifactType, policy.BundleType)
		return !isBundle || !d.MediaType.IsImage()
	})
	for _, descriptor := range list.Manifests[:min(len(list.Manifests), maxBundles)] {
		image, err := remote.Image(subject.Context().Digest(descriptor.Digest.String()), remote.WithContext(ctx), remote.Reuse(puller))
		if err != nil {
			return nil, err
		}
		texts, err := bundleTexts(image)
		if err != nil {
			return nil, err
		}
		found = append(found, texts...)
	}
	return found, nil
}

// bundleTexts returns the bundles among the layers of an image.
func bundleTexts(image v1.Image) (texts [][]byte, err error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	for _, l := range manifest.Layers {
		if !strings.HasPrefix(string(l.MediaType), policy.BundleType) || l.Size > ingest.MaxJSON {
			continue
		}
		layer, err := image.LayerByDigest(l.Digest)
		if err != nil {
			return nil, err
		}
		body, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			return nil, fmt.Errorf("read sigstore bundle: %w", err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// login returns the login for a source. The login that was chosen for the image does not count for a mirror.
func (a *address) login(source reference.Named) (types.DockerAuthConfig, error) {
	sys := *a.sys
	if reference.Domain(source) != reference.Domain(a.ref.DockerReference()) {
		sys.DockerAuthConfig = nil
	}
	return config.GetCredentialsForRef(&sys, source)
}

// transport returns a connection to a source with the certificates that the library uses for it.
func (a *address) transport(source sysregistriesv2.PullSource) (*http.Transport, error) {
	transport := tlsclientconfig.NewTransport()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: source.Endpoint.Insecure}
	if a.sys.DockerInsecureSkipTLSVerify != types.OptionalBoolUndefined {
		transport.TLSClientConfig.InsecureSkipVerify = a.sys.DockerInsecureSkipTLSVerify == types.OptionalBoolTrue
	}
	dirs := []string{a.sys.DockerPerHostCertDirPath}
	if dirs[0] == "" {
		paths, err := configfile.GetSearchPaths(&configfile.File{Name: "certs", Extension: "d", DoNotUseExtensionForConfigName: true, UserId: os.Geteuid()})
		if err != nil {
			return nil, err
		}
		dirs = append(paths.DropInDirectories, "/etc/docker/certs.d")
	}
	for _, dir := range dirs {
		dir = filepath.Join(dir, reference.Domain(source.Reference))
		if _, err := os.Stat(dir); err == nil {
			return transport, tlsclientconfig.SetupCertificates(dir, transport.TLSClientConfig)
		}
	}
	return transport, nil
}

// limitedTransport bounds each answer, and refuses plain HTTP except where the configuration allows it.
type limitedTransport struct{ *http.Transport }

func (t limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !t.TLSClientConfig.InsecureSkipVerify {
		return nil, report.New(report.Failure, "", "refused to ask %s without TLS", req.URL.Host)
	}
	resp, err := t.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = limitedBody{ingest.LimitDocument(resp.Body), resp.Body}
	}
	return resp, err
}

type limitedBody struct {
	io.Reader
	io.Closer
}
