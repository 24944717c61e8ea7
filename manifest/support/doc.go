// Package support has the table of every field of every kind: done, accepted or refused, and finds the
// fields that an object sets in it.
package support
