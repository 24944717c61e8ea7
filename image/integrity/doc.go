// Package integrity finds damage on disk in a store of images, and repairs it.
package integrity
