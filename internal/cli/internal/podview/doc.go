// Package podview reads the state of a pod from its files: status, logs and tables. The fast path
// (internal/cli/fastpath) links it, so it must not import flags or manifests.
package podview
