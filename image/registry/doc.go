// Package registry reads images from registries: credentials, registries.conf(5), short names, and what a
// registry is not to be sent.
package registry
