package volumes

import "os"

// RemoveTree removes path and everything below it.
func RemoveTree(path string) error { return os.RemoveAll(path) }
