package image

import (
	"context"
	"errors"
	"fmt"

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
)

// Ensure finds or pulls an image as the kubelet would under a pull policy:
// Always asks the registry every time and fails if that fails, even with a copy at
// hand; IfNotPresent asks only without a copy; Never never asks, and without a
// copy fails with reason ErrImageNeverPull.
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
	case Always, Newer:
	default:
		return pod.Image{}, report.New(report.Internal, "", "pull policy %q is unknown", policy)
	}
	ours := img
	img, err = s.Pull(ctx, ref, o)
	if err == nil {
		return img, nil
	}
	if policy == Newer && here && ctx.Err() == nil && Reason(err) == ErrImagePull {
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

// neverPull is said in the kubelet's words.
func neverPull(ref string, cause error) error {
	err := report.New(report.Failure, "podrun image load FILE, or podrun image pull "+ref,
		"container image %q is not present with pull policy of Never", ref)
	if !errors.Is(cause, ErrNotFound) {
		err = report.New(report.Failure, report.Hint(cause), "container image %q cannot be used, with pull policy of Never: %w", ref, cause)
	}
	return &Error{ErrImageNeverPull, ref, err}
}
