// Package integrity finds what has changed on disk in a store of images, and repairs it.
package integrity
