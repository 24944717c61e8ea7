package api

// Status is the state of a layer.
type Status string

const (
	Waiting   Status = "waiting"   // another process unpacks it, or its turn has not come
	Fetching  Status = "fetching"  // read, verified and unpacked in one stream
	Storing   Status = "storing"   // being made durable
	Done      Status = "done"      // in the store
	Exists    Status = "exists"    // it was in the store before
	Cancelled Status = "cancelled" // it failed or another layer did: see the error
)

// Progress reports a layer's state at every change and, while it is being fetched, after every MiB. Several
// goroutines send it, one call at a time.
type Progress struct {
	Image  string // as the caller wrote it
	Layer  string // sha256:<hex> of the layer's blob, or of its tar stream if it has no blob
	Status Status
	Done   int64 // bytes read so far
	Total  int64 // bytes in all; -1 if unknown
}
