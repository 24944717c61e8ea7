//go:build embedtrampoline

package trampoline

import _ "embed"

//go:embed trampoline.bin
var carried []byte

// Carried is the program that scripts/build has put into this one, or nil.
func Carried() []byte { return carried }
