// Package fastexec executes the program of the fast path, which the release embeds, before Go
// starts: see fastexec.c. A blank import links the constructor in. Without the build tag
// embedprograms the package is empty.
package fastexec
