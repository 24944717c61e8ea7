// Package registry reads images from registries. It handles credentials, registries.conf(5) and short names,
// and keeps credentials from servers that must not get them.
package registry
