// Package records reads and writes the records of a store of images: images, names, layers, and their locks.
package records
