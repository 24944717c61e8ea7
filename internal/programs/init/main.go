// Command init is libcontainer's init, which sets up a container. scripts/build builds it and embeds it in the podrun
// binary. The supervisor program can do the same, but takes longer to start.
package main

import (
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // its C half

	_ "github.com/podrun/podrun/internal/reexec/nsenter" // resets signals
)

func main() { libcontainer.Init() }
