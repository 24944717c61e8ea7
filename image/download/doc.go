// Package download fetches blobs over unreliable connections. It stores received bytes in partial files and
// continues from there.
package download
