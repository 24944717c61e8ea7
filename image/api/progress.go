package api

// Status says what is happening to a layer.
type Status string

const (
	Waiting   Status = "waiting"   // another process is working on it, or it is not its turn
	Fetching  Status = "fetching"  // read, verified and unpacked in one stream
	Storing   Status = "storing"   // being made durable
	Done      Status = "done"      // in the store
	Exists    Status = "exists"    // it was there already
	Cancelled Status = "cancelled" // it failed or another layer did: the error says why
)

// Progress is told of every layer when its status changes and, while it is being
// fetched, about every MiB. It comes from several goroutines, one call at a time.
type Progress struct {
	Image  string // as asked for
	Layer  string // sha256:<hex> of the layer's blob, or of its tar stream where it has no blob
	Status Status
	Done   int64 // bytes read so far
	Total  int64 // bytes there are; -1 if unknown
}
