//go:build !embedtrampoline

package trampoline

// Embedded is the program that scripts/build has put into this one, or nil.
func Embedded() []byte { return nil }
