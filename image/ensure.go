package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/containers/image/v5/docker/reference"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// The pull policies of a container (core/v1 PullPolicy).
const (
	Always       = "Always"
	IfNotPresent = "IfNotPresent"
	Never        = "Never"
	// Newer is none of Kubernetes': Always, but a copy at hand does if the registry cannot
	// be asked.
	Newer = "Newer"
	// Unset is the policy of a manifest that has none. Kubernetes' default decides, Always for
	// the tag latest and else IfNotPresent, with two differences. What came onto this machine
	// without a registry is not asked of one. Where the registry cannot be reached, a copy on
	// this machine is used: a machine without a network must be able to start its pods.
	Unset = ""
)

// Ensure finds or pulls an image as the kubelet would under a pull policy:
// Always asks the registry every time and fails if that fails, even with a copy at
// hand; IfNotPresent asks only without a copy; Never never asks, and without a
// copy fails with reason ErrImageNeverPull. For Newer and Unset see there.
func (s *Store) Ensure(ctx context.Context, ref string, policy string, o PullOptions) (pod.Image, error) {
	img, err := s.Resolve(ref)
	if Reason(err) == InvalidImageName {
		return pod.Image{}, err
	}
	here, broken := err == nil, err
	if here {
		s.note(img.ID)
	}
	if _, isID := parseID(ref); isID && here {
		return img, nil // no registry knows it
	}
	if policy == Unset {
		switch {
		case s.local(ref):
			if here {
				return img, nil
			}
			return pod.Image{}, notLoaded(ref, broken)
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
		return pod.Image{}, neverPull(ref, err)
	case Always, Newer, Unset:
	default:
		return pod.Image{}, report.New(report.Internal, "", "pull policy %q is unknown", policy)
	}
	if o.Here {
		return pod.Image{}, fmt.Errorf("find %s: %w", ref, ErrElsewhere)
	}
	ours := img
	img, err = s.Pull(ctx, ref, o)
	if err == nil {
		return img, nil
	}
	copyDoes := policy == Newer && Reason(err) == ErrImagePull || policy == Unset && MayPass(err)
	if here && copyDoes && ctx.Err() == nil {
		if o.Warn != nil {
			o.Warn(fmt.Errorf("the copy on this machine is used: %w", err))
		}
		return ours, nil
	}
	if broken != nil && !errors.Is(broken, ErrNotFound) {
		err = errors.Join(broken, err)
	}
	hint := "podrun image ls shows the images that are here; podrun image load FILE brings one from a file"
	if here {
		hint = "there is a copy on this machine: imagePullPolicy: IfNotPresent uses it"
	}
	if report.Hint(err) != "" {
		hint = report.Hint(err) + "; or: " + hint
	}
	return pod.Image{}, report.New(report.Failure, hint, "%w", err)
}

// local says whether no registry is asked for an image unless a pull policy says so: its
// name begins with localhost/, as podman and buildah name what they build, or an archive or
// the user has given it the name.
func (s *Store) local(ref string) bool {
	name, err := parseName(ref)
	return err == nil && reference.Domain(name) == "localhost" || !s.FromRegistry(ref)
}

func isLatest(ref string) bool {
	name, err := parseName(ref)
	if err != nil {
		return false
	}
	tagged, ok := name.(reference.Tagged)
	return ok && tagged.Tag() == "latest"
}

// notLoaded is the error of a local image that is not there, or that cannot be used.
func notLoaded(ref string, cause error) error {
	hint := fmt.Sprintf("podrun image load FILE or podrun image import ROOTFS.tar %s brings it; imagePullPolicy: IfNotPresent asks a registry", ref)
	err := report.New(report.Failure, hint, "image %q is not on this machine, and a registry is not asked for such a name", ref)
	if !errors.Is(cause, ErrNotFound) {
		err = report.New(report.Failure, hint, "image %q cannot be used: %w", ref, cause)
	}
	return &Error{ErrImageNeverPull, ref, err}
}

// neverPull is said in the kubelet's words.
func neverPull(ref string, cause error) error {
	err := report.New(report.Failure, "podrun image load FILE, or podrun image pull "+ref,
		"container image %q is not present with pull policy of Never", ref)
	if !errors.Is(cause, ErrNotFound) {
		err = report.New(report.Failure, report.Hint(cause), "container image %q cannot be used, with pull policy of Never: %w", ref, cause)
	}
	return &Error{ErrImageNeverPull, ref, err}
}
