package ingest

import (
	"path/filepath"

	"golang.org/x/sync/semaphore"

	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// What one process does at once, whatever images it adds: memory is what bounds it. A pull
// is to get by with 64 MiB, of which each unpacker takes 14 and the program itself 15.
const (
	parallelUnpacks = 2
)

// Ingester is a store with what all images that a process adds share.
type Ingester struct {
	*records.Store
	download.Downloader
	unpacks *semaphore.Weighted
	windows *semaphore.Weighted
	Part    int // entries that an unpacker deals with at once
}

// New is a store to add to. passing says whether an error of a registry may be gone
// in a moment.
func New(s *records.Store, passing func(error) bool) *Ingester {
	return &Ingester{
		Store:      s,
		Downloader: download.Downloader{PartialDir: filepath.Join(s.Dir, download.PartialDirName), Limits: layer.LimitsFor, Retry: download.DefaultRetryPolicy(), Retryable: passing},
		unpacks:    semaphore.NewWeighted(parallelUnpacks), windows: semaphore.NewWeighted(layer.WindowMemory), Part: layer.DefaultPartEntries,
	}
}
