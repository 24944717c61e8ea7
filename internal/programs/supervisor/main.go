// Command supervisor is the supervisor program: the supervisor of one pod and libcontainer's init,
// without manifests, images or CLI. scripts/build builds it and embeds it in the podrun binary.
package main

import (
	"os"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/runner"
)

func main() {
	reexec.Main(runner.EntryPoints())
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
