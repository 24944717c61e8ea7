// Package layer unpacks the tar stream of a layer in a confined child process, and makes the same stream
// again from the unpacked files.
package layer
