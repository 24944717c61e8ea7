package api

// The actions of a SyncRule, as compose's develop.watch has them.
const (
	SyncFiles      = "sync"         // copy what has changed
	SyncRestart    = "restart"      // restart the container
	SyncAndRestart = "sync+restart" // copy what has changed, and restart the container
	SyncRebuild    = "rebuild"      // build the image, and replace the pod
)

// SyncRule says what is done when a file of the host changes (compose specification: develop.md).
type SyncRule struct {
	Path        string   `json:"path"`                   // of the host: a file or a directory; relative to the manifest's directory
	Action      string   `json:"action,omitempty"`       // "": sync
	Target      string   `json:"target,omitempty"`       // an absolute path in the container, for the actions that copy
	Container   string   `json:"container,omitempty"`    // "": the first
	Ignore      []string `json:"ignore,omitempty"`       // patterns of .dockerignore, relative to Path
	Include     []string `json:"include,omitempty"`      // only files with one of these patterns
	InitialSync bool     `json:"initial_sync,omitempty"` // also copy everything at the beginning
}

// SyncActions returns all actions.
func SyncActions() []string { return []string{SyncFiles, SyncRestart, SyncAndRestart, SyncRebuild} }

// Copies reports whether the action copies files.
func (r *SyncRule) Copies() bool { return r.Action == SyncFiles || r.Action == SyncAndRestart }
