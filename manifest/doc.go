// Package manifest turns what a user wrote into what the supervisor runs, and
// what the supervisor knows back into what a user reads.
//
//	Load    file → decode (strict) → support table → defaults → validation,
//	        every error of every document at once
//	Build   a loaded Pod and its images → pod.Plan
//	Render  the Pod and its pod.Status → the Pod with its PodStatus
//	Row     the same → one line of `podrun ps`
//
// It is the only room that knows Kubernetes' types, and it is pure: it reads no
// file, no clock and no environment.
package manifest
