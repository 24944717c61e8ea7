package ingest

import (
	"path/filepath"

	"golang.org/x/sync/semaphore"

	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// Limits of one process, for all images that it adds. Memory is the limiting resource: a pull must work with
// 64 MiB, of which each unpacker takes 14 and the program itself 15.
const (
	parallelUnpacks = 2
)

// Ingester is a store with the resources that all additions of a process share.
type Ingester struct {
	*records.Store
	download.Downloader
	unpacks *semaphore.Weighted
	windows *semaphore.Weighted
	Part    int // entries that an unpacker processes at once
}

// New returns an Ingester for s. isTransient reports whether an error of a registry is transient.
func New(s *records.Store, isTransient func(error) bool) *Ingester {
	return &Ingester{
		Store:      s,
		Downloader: download.Downloader{PartialDir: filepath.Join(s.Dir, download.PartialDirName), Limits: layer.LimitsFor, Retry: download.DefaultRetryPolicy(), Retryable: isTransient},
		unpacks:    semaphore.NewWeighted(parallelUnpacks), windows: semaphore.NewWeighted(layer.WindowMemory), Part: layer.DefaultPartEntries,
	}
}
