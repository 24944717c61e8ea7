// Package support has the table of every field of every kind: supported, accepted or refused. It finds the fields
// that an object sets in the table.
package support
