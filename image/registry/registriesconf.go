package registry

import (
	"fmt"
	"os"
	"strings"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/report"
)

// DescribeConfig returns a sentence about how registries.conf(5) resolves the names of images. The error,
// with its hint, names a file with which every pull would fail. It sends no request.
func DescribeConfig() (string, error) {
	sys := systemConfig()
	return describeConfig(&sys)
}

// systemConfig returns the paths of the library's files: the usual ones, except that a variable may name another
// registries.conf, whose drop-ins are read too.
func systemConfig() types.SystemContext {
	return types.SystemContext{SystemRegistriesConfPath: os.Getenv("CONTAINERS_REGISTRIES_CONF")}
}

func describeConfig(sys *types.SystemContext) (string, error) {
	path := sysregistriesv2.ConfigPath(sys)
	all, err := sysregistriesv2.GetRegistries(sys)
	if err != nil {
		return "", report.New(report.Failure, "correct "+path+" or its drop-ins, as described in registries.conf(5); or remove them: podrun requires none", "%w", err)
	}
	blocked, mirrored := 0, 0
	for _, r := range all {
		if r.Blocked {
			blocked++
		}
		if len(r.Mirrors) > 0 {
			mirrored++
		}
	}
	facts := []string{"images come from the registry in their name, or docker.io"}
	if len(all) > 0 {
		facts = append(facts, fmt.Sprintf("%s has %d registries, %d blocked, %d with mirrors", path, len(all), blocked, mirrored))
	} else {
		facts = append(facts, path+" changes nothing")
	}
	return strings.Join(facts, "; "), nil
}

// ShortNameCandidates returns the names that a reference may stand for, the most likely first. A reference
// with a registry stands for itself. For a short one registries.conf(5) decides: an alias, or its search
// registries; without either it belongs to docker.io, as in Kubernetes.
func (s *Client) ShortNameCandidates(ref string) ([]reference.Name, error) {
	name, err := records.ParseName(ref)
	if err != nil || !reference.IsShort(ref) {
		return []reference.Name{name}, err
	}
	repository, _, _ := strings.Cut(ref, "@")
	repository, _, _ = strings.Cut(repository, ":")
	sys := s.Config
	alias, _, err := sysregistriesv2.ResolveShortNameAlias(&sys, repository)
	if err != nil {
		return nil, configError(err)
	}
	if alias != nil {
		to, err := reference.Parse(alias.Name())
		return []reference.Name{withVersion(to, name)}, err
	}
	hosts, err := sysregistriesv2.UnqualifiedSearchRegistries(&sys)
	if err != nil {
		return nil, configError(err)
	}
	var names []reference.Name
	for _, host := range hosts {
		found, err := reference.Parse(host + "/" + repository)
		if err != nil {
			return nil, configError(fmt.Errorf("search registry %q: %w", host, err))
		}
		names = append(names, withVersion(found, name))
	}
	if len(names) == 0 {
		names = append(names, name)
	}
	return names, nil
}

// ResolveShortName returns the candidates for a pull. If registries.conf requires a prompt for the registry
// of a short name, it returns an error: the name must be written out.
func (s *Client) ResolveShortName(ref string) ([]reference.Name, error) {
	names, err := s.ShortNameCandidates(ref)
	if err != nil || len(names) < 2 {
		return names, err
	}
	sys := s.Config
	mode, err := sysregistriesv2.GetShortNameMode(&sys)
	if err != nil {
		return nil, configError(err)
	}
	if mode != types.ShortNameModeEnforcing {
		return names, nil
	}
	var all []string
	for _, n := range names {
		all = append(all, n.Familiar())
	}
	return nil, &api.Error{Reason: api.ErrImagePull, Image: ref, Err: report.New(report.Usage,
		"write the name with its registry, or add an alias to registries.conf, or set its short-name-mode to permissive",
		"image name %q is short, and may stand for %s", ref, strings.Join(all, " or "))}
}

// withVersion returns a repository with the tag or digest of another name.
func withVersion(to, from reference.Name) reference.Name {
	to.Tag, to.Digest = from.Tag, from.Digest
	return to
}

func configError(err error) error {
	return report.New(report.Failure, "correct it, as described in registries.conf(5); podrun doctor checks it, too", "read registries.conf: %w", err)
}
