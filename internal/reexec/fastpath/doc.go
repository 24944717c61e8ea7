// Package fastpath executes the program of the fast path, which the release embeds, before Go
// starts: see fastpath.c. A blank import links the constructor in. Without the build tag
// embedprograms the package is empty.
package fastpath
