//go:build embedexecshim

package execshim

import _ "embed"

//go:embed execshim.bin
var carried []byte

// Embedded returns the exec shim's program, which scripts/build has embedded in this one, or nil.
func Embedded() []byte { return carried }
