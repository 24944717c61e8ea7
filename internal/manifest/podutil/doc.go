// Package podutil derives values from a Pod of the Kubernetes API: which containers are sidecars, which
// images, ports and devices it uses, what its annotations select.
package podutil
