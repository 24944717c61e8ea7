//go:build embedtrampoline

package trampoline

import _ "embed"

//go:embed trampoline.bin
var carried []byte

// Embedded returns the trampoline's program, which scripts/build has embedded in this one, or nil.
func Embedded() []byte { return carried }
