package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// Login checks the account with the registry, and stores it where pulls find it: in the auth file, or with
// the credential helper that registries.conf or the auth file names. It returns where.
func Login(ctx context.Context, a api.Account, o api.PullOptions) (string, error) {
	sys := accountContext(a.Registry, o)
	host, _, _ := strings.Cut(a.Registry, "/")
	name, err := reference.Parse(host + "/x")
	if err != nil {
		return "", fmt.Errorf("log in to %s: %w", a.Registry, err)
	}
	within, stop := context.WithTimeoutCause(ctx, download.DefaultRetryPolicy().AnswerTimeout, download.ErrStalled)
	defer stop()
	within, cancel := newGuard([]string{hostOf(name.Domain)}).watch(within)
	defer cancel(nil)
	if err = docker.CheckAuth(within, sys, a.User, a.Password, host); err != nil {
		err = download.Cause(within, err)
	}
	if refused := new(docker.ErrUnauthorizedForCredentials); errors.As(err, refused) {
		return "", report.New(report.Failure, "check the user name and the password", "%s refuses this user and password", a.Registry)
	}
	if err != nil {
		return "", addHint(fmt.Errorf("log in to %s: %w", a.Registry, err))
	}
	where, err := config.SetCredentials(sys, a.Registry, a.User, a.Password)
	if err != nil {
		return "", fmt.Errorf("store the login to %s: %w", a.Registry, err)
	}
	return where, nil
}

// Logout removes a stored account, or with "" all of them.
func Logout(registry string, o api.PullOptions) error {
	sys := accountContext(registry, o)
	if registry == "" {
		return wrap("remove the logins", config.RemoveAllAuthentication(sys))
	}
	err := config.RemoveAuthentication(sys, registry)
	if errors.Is(err, config.ErrNotLoggedIn) {
		if as, err := config.GetCredentials(sys, registry); err == nil && as.Username != "" {
			return report.New(report.Failure, "docker logout "+registry+", or remove it from ~/.docker/config.json", "the login to %s is stored by docker", registry)
		}
		return report.New(report.Failure, "", "not logged in to %s", registry)
	}
	return wrap("remove the login to "+registry, err)
}

// LoginUser returns the user with whose account images are pulled from a registry; an error if there is
// none.
func LoginUser(registry string, o api.PullOptions) (string, error) {
	as, err := config.GetCredentials(accountContext(registry, o), registry)
	if err != nil {
		return "", fmt.Errorf("find the login to %s: %w", registry, err)
	}
	if as.Username == "" {
		return "", report.New(report.Failure, "podrun login "+registry, "not logged in to %s", registry)
	}
	return as.Username, nil
}

func accountContext(registry string, o api.PullOptions) *types.SystemContext {
	sys := systemContext(systemConfig(), o)
	host, _, _ := strings.Cut(registry, "/")
	if name, err := reference.Parse(host + "/x"); err == nil && o.TLSVerify == nil && records.IsLoopback(name) {
		sys.DockerInsecureSkipTLSVerify = types.OptionalBoolTrue
	}
	return sys
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isTransient reports whether the cause of a failed pull may disappear by itself: a network or a registry
// that does not answer.
func isTransient(err error) bool {
	return isTemporary(err) || isUnreachable(err) && !errors.Is(err, http.ErrSchemeMismatch)
}
