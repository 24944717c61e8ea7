package defaulting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// SetPullPolicies sets each image's default pull policy, as the API server does.
func SetPullPolicies(s *corev1.PodSpec) {
	set := func(u podutil.ImageUse, policy *corev1.PullPolicy) {
		if *policy == "" {
			*policy = podutil.DefaultPullPolicy(u.Reference)
		}
	}
	podutil.VisitImages(s, set)
	for i := range s.EphemeralContainers {
		c := &s.EphemeralContainers[i]
		set(podutil.ImageUse{Reference: c.Image}, &c.ImagePullPolicy)
	}
}

// UnsetPullPolicies returns the keys of a Pod's images without a pull policy.
func UnsetPullPolicies(s *corev1.PodSpec) (keys []string) {
	podutil.VisitImages(s, func(u podutil.ImageUse, policy *corev1.PullPolicy) {
		if *policy == "" {
			keys = append(keys, u.Key())
		}
	})
	return keys
}

// RestoreUnsetPullPolicies reverts SetPullPolicies for the images that UnsetPullPolicies returned. A policy
// that is not the default was set later, and stays.
func RestoreUnsetPullPolicies(s *corev1.PodSpec, keys []string) {
	podutil.VisitImages(s, func(u podutil.ImageUse, policy *corev1.PullPolicy) {
		if slices.Contains(keys, u.Key()) && *policy == podutil.DefaultPullPolicy(u.Reference) {
			*policy = ""
		}
	})
}
