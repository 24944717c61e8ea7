// Package ingest adds an image to a store: it reads manifest and config, has the layers unpacked, makes them
// durable, and records the image and its names.
package ingest
