//go:build embedtrampoline

package trampoline

import _ "embed"

//go:embed trampoline.bin
var carried []byte

// Embedded is the program that scripts/build has put into this one, or nil.
func Embedded() []byte { return carried }
