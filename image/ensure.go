package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// The pull policies of a container (core/v1 PullPolicy).
const (
	Always       = "Always"
	IfNotPresent = "IfNotPresent"
	Never        = "Never"
	// Newer is the policy of podman's --pull=newer: as Always, but if the pull fails, a stored copy is used. An
	// image that the policy for signatures refuses is still an error.
	Newer = "Newer"
	// Unset is the policy of a manifest that has none. Kubernetes' default applies, Always for the tag
	// latest and else IfNotPresent, with two differences. For an image that was added without a
	// registry, no registry is contacted. If the registry cannot be reached, a stored copy is used: a
	// machine without a network must be able to start its pods.
	Unset = ""
)

// Ensure finds or pulls an image as the kubelet does under a pull policy. Always contacts the registry every
// time and fails if the pull fails, even with a stored copy; but a copy of an image that is named by its digest is the
// image, and is used. IfNotPresent contacts the registry only if there is no copy. Never contacts no registry, and without a copy it fails with reason ErrImageNeverPull. Newer and
// Unset are described at their constants.
func (s *Store) Ensure(ctx context.Context, ref string, policy string, o api.PullOptions) (pod.Image, error) {
	img, err := s.Resolve(ref)
	if api.Reason(err) == api.InvalidImageName {
		return pod.Image{}, err
	}
	here, findErr := err == nil, err
	if here {
		s.touchUsed(img.ID)
	}
	if here && records.IsPinned(ref) {
		return img, nil // no registry has an id, and a digest stands for the same image there
	}
	if policy == Unset {
		switch {
		case s.isLocal(ref):
			if here {
				return img, nil
			}
			return pod.Image{}, notLoadedError(ref, findErr)
		case !isLatest(ref):
			policy = IfNotPresent
		}
	}
	switch policy {
	case IfNotPresent:
		if here {
			return img, nil
		}
	case Never:
		if here {
			return img, nil
		}
		return pod.Image{}, neverPullError(ref, err)
	case Always, Newer, Unset:
	default:
		return pod.Image{}, report.New(report.Internal, "", "pull policy %q is unknown", policy)
	}
	if o.LocalOnly {
		return pod.Image{}, fmt.Errorf("find %s: %w", ref, api.ErrRegistryNeeded)
	}
	ours := img
	img, err = s.Pull(ctx, ref, o)
	if err == nil {
		return img, nil
	}
	mayUseCopy := policy == Newer && api.Reason(err) == api.ErrImagePull || policy == Unset && api.IsTransient(err)
	if here && mayUseCopy && ctx.Err() == nil {
		if o.Warn != nil {
			o.Warn(fmt.Errorf("the copy on this machine is used: %w", err))
		}
		return ours, nil
	}
	if findErr != nil && !errors.Is(findErr, api.ErrNotFound) {
		err = errors.Join(findErr, err)
	}
	hint := "podrun image ls shows the images that are here; podrun image load FILE adds one from a file"
	if here {
		hint = "there is a copy on this machine: imagePullPolicy: IfNotPresent uses it"
	}
	if report.Hint(err) != "" {
		hint = report.Hint(err) + "; or: " + hint
	}
	return pod.Image{}, report.New(report.Failure, hint, "%w", err)
}

// isLocal reports whether a name is local: without a pull policy no registry is contacted for it. It begins with
// localhost/, as podman and buildah name what they build, or an archive or the user gave it.
func (s *Store) isLocal(ref string) bool {
	name, err := records.ParseName(ref)
	return err == nil && name.Domain == "localhost" || !s.FromRegistry(ref)
}

func isLatest(ref string) bool {
	name, err := records.ParseName(ref)
	return err == nil && name.Tag == "latest"
}

// notLoadedError returns the error of a local image that is missing or unusable.
func notLoadedError(ref string, cause error) error {
	hint := fmt.Sprintf("podrun image load FILE or podrun image import ROOTFS.tar %s adds it; imagePullPolicy: IfNotPresent pulls it from a registry", ref)
	err := report.New(report.Failure, hint, "image %q is not on this machine, and a local name is not pulled", ref)
	if !errors.Is(cause, api.ErrNotFound) {
		err = report.New(report.Failure, hint, "image %q cannot be used: %w", ref, cause)
	}
	return &api.Error{Reason: api.ErrImageNeverPull, Image: ref, Err: err}
}

// neverPullError returns the error of policy Never without a usable copy, in the kubelet's words.
func neverPullError(ref string, cause error) error {
	err := report.New(report.Failure, "podrun image load FILE, or podrun image pull "+ref,
		"container image %q is not present with pull policy of Never", ref)
	if !errors.Is(cause, api.ErrNotFound) {
		err = report.New(report.Failure, report.Hint(cause), "container image %q cannot be used, with pull policy of Never: %w", ref, cause)
	}
	return &api.Error{Reason: api.ErrImageNeverPull, Image: ref, Err: err}
}
