package store

import "path/filepath"

// Filters is where compiled filters for system calls are kept, which all pods of a user
// share, until the machine is shut down.
func (p Pod) Filters() string { return filepath.Join(p.dirs.Runtime, "filters") }
