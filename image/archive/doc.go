// Package archive adds images from OCI layouts, OCI archives, docker archives and root file systems, and
// writes the first three.
package archive
