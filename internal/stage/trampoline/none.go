//go:build !embedtrampoline

package trampoline

// Carried is the program that scripts/build has put into this one, or nil.
func Carried() []byte { return nil }
