package registry

import (
	"context"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/credentials"
	"github.com/podrun/podrun/image/download"
)

// Head returns the digest for which a name stands in its registry now. It sends HEAD, which is no pull in the quotas
// of registries. With several sources the first that answers decides, as for a pull.
func (s *Client) Head(ctx context.Context, ref string, o api.PullOptions) (string, error) {
	names, err := s.ResolveShortName(ref)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Retry.AnswerTimeout, download.ErrStalled)
	defer cancel()
	for _, name := range names {
		var logins []*types.DockerAuthConfig
		for _, login := range credentials.For(name, o.AuthTexts) {
			as := types.DockerAuthConfig(login)
			logins = append(logins, &as)
		}
		var registryAddress *address
		if registryAddress, err = s.address(name, o); err != nil {
			return "", err
		}
		var d digest.Digest
		if d, err = registryAddress.head(ctx, append(logins, nil)); err == nil { // nil: the auth file's
			return d.String(), nil
		}
	}
	return "", &api.Error{Reason: api.ErrImagePull, Image: ref, Transient: isTransient(err), Err: addHint(err)}
}

// head asks the image's sources, each with the first of the logins that it accepts.
func (a *address) head(ctx context.Context, logins []*types.DockerAuthConfig) (d digest.Digest, err error) {
	sources, err := a.sources()
	if err != nil {
		return "", err
	}
	guard := newGuard(a.hosts)
	for _, source := range sources {
		if d, err = a.headAt(ctx, guard, source, logins); err == nil {
			return d, nil
		}
	}
	return "", err
}

func (a *address) headAt(ctx context.Context, guard *credentialGuard, source sysregistriesv2.PullSource, logins []*types.DockerAuthConfig) (digest.Digest, error) {
	ref, err := docker.NewReference(source.Reference)
	if err != nil {
		return "", err
	}
	sys := *a.sys
	if source.Endpoint.Insecure {
		sys.DockerInsecureSkipTLSVerify = types.OptionalBoolTrue
	}
	if reference.Domain(source.Reference) != reference.Domain(a.ref.DockerReference()) {
		logins = []*types.DockerAuthConfig{nil} // a mirror does not get the login of the registry
	}
	var d digest.Digest
	for _, login := range logins {
		sys.DockerAuthConfig = login
		within, cancel := guard.watch(ctx)
		if d, err = docker.GetDigest(within, &sys, ref); err != nil {
			err = download.Cause(within, err)
		}
		cancel(nil)
		if err == nil || !isDenied(err) {
			return d, err
		}
	}
	return "", err
}
