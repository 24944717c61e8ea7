//go:build !embedtrampoline

package trampoline

// Embedded returns the trampoline's program, which scripts/build has embedded in this one, or nil.
func Embedded() []byte { return nil }
