package defaulting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/manifest/podutil"
)

// SetPullPolicies gives each image the pull policy that the API server gives it.
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

// UnsetPullPolicies names the images of a Pod without a pull policy, by their keys.
func UnsetPullPolicies(s *corev1.PodSpec) (keys []string) {
	podutil.VisitImages(s, func(u podutil.ImageUse, policy *corev1.PullPolicy) {
		if *policy == "" {
			keys = append(keys, u.Key())
		}
	})
	return keys
}

// RestoreUnsetPullPolicies is the opposite of SetPullPolicies for the images that UnsetPullPolicies has named. A
// policy that is not the default has been written since.
func RestoreUnsetPullPolicies(s *corev1.PodSpec, keys []string) {
	podutil.VisitImages(s, func(u podutil.ImageUse, policy *corev1.PullPolicy) {
		if slices.Contains(keys, u.Key()) && *policy == podutil.DefaultPullPolicy(u.Reference) {
			*policy = ""
		}
	})
}
