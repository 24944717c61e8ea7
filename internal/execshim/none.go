//go:build !embedexecshim

package execshim

// Embedded returns the exec shim's program, which scripts/build has embedded in this one, or nil.
func Embedded() []byte { return nil }
