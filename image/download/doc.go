// Package download fetches blobs over connections that break: it keeps what has come in partial files, and
// goes on from there.
package download
