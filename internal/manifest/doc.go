// Package manifest turns a user's manifest into what the supervisor runs, and the supervisor's status into
// what a user reads.
//
//	Load    file → decode (strict) → support table → defaults → validation,
//	        every error of every document at once
//	Build   a loaded Pod and its images → pod.Plan
//	Render  the Pod and its pod.Status → the Pod with its PodStatus
//	PodRow  (package printers) the same → one line of `podrun ps`
//
// This package and the packages below it translate Kubernetes' types into the types of package pod, which the
// supervisor program uses. They are pure: they read no file, no clock and no environment.
package manifest
