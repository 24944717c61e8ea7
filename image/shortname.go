package image

import (
	"fmt"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/containers/image/v5/types"

	"github.com/podrun/podrun/internal/report"
)

// short says whether a name leaves its registry open, as "busybox" and "team/web:1" do.
func short(ref string) bool {
	first, _, path := strings.Cut(ref, "/")
	return !path || !strings.ContainsAny(first, ".:") && first != "localhost"
}

// meant are the names that a reference may stand for, the likeliest first. One with a
// registry stands for itself. What a short one stands for registries.conf(5) says: an
// alias, or the registries that it names for searching; without either it is
// docker.io's, as for Kubernetes.
func (s *registryClient) meant(ref string) ([]reference.Named, error) {
	name, err := parseName(ref)
	if err != nil || !short(ref) {
		return []reference.Named{name}, err
	}
	plain, err := reference.Parse(ref)
	if err != nil {
		return nil, err // parseName has parsed it
	}
	repository := plain.(reference.Named).Name()
	sys := s.conf
	alias, _, err := sysregistriesv2.ResolveShortNameAlias(&sys, repository)
	if err != nil {
		return nil, badRegistries(err)
	}
	if alias != nil {
		return []reference.Named{withVersion(alias, name)}, nil
	}
	hosts, err := sysregistriesv2.UnqualifiedSearchRegistries(&sys)
	if err != nil {
		return nil, badRegistries(err)
	}
	var names []reference.Named
	for _, host := range hosts {
		found, err := reference.ParseNormalizedNamed(host + "/" + repository)
		if err != nil {
			return nil, badRegistries(fmt.Errorf("search registry %q: %w", host, err))
		}
		names = append(names, withVersion(found, name))
	}
	if len(names) == 0 {
		names = append(names, name)
	}
	return names, nil
}

// chosen is meant for a pull: where registries.conf wants to be asked which registry a
// short name stands for, it has to be written out.
func (s *registryClient) chosen(ref string) ([]reference.Named, error) {
	names, err := s.meant(ref)
	if err != nil || len(names) < 2 {
		return names, err
	}
	sys := s.conf
	mode, err := sysregistriesv2.GetShortNameMode(&sys)
	if err != nil {
		return nil, badRegistries(err)
	}
	if mode != types.ShortNameModeEnforcing {
		return names, nil
	}
	var all []string
	for _, n := range names {
		all = append(all, reference.FamiliarString(n))
	}
	return nil, &Error{ErrImagePull, ref, report.New(report.Usage,
		"write the name with its registry, or add an alias to registries.conf, or set its short-name-mode to permissive",
		"image name %q is short, and may stand for %s", ref, strings.Join(all, " or "))}
}

// withVersion gives a repository the tag or digest of another name.
func withVersion(to, from reference.Named) reference.Named {
	to = reference.TrimNamed(to)
	switch v := from.(type) {
	case reference.Digested:
		if named, err := reference.WithDigest(to, v.Digest()); err == nil {
			return named
		}
	case reference.Tagged:
		if named, err := reference.WithTag(to, v.Tag()); err == nil {
			return named
		}
	}
	return reference.TagNameOnly(to)
}

func badRegistries(err error) error {
	return report.New(report.Failure, "correct it, as registries.conf(5) has it; podrun doctor looks at it too", "read registries.conf: %w", err)
}
