// Command back is the lean half of podrun: the supervisor of one pod and
// libcontainer's init, without manifest, images or command line. It is built by
// scripts/build and carried inside the podrun binary.
package main

import (
	"os"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/runner"
)

func main() {
	reexec.Main(runner.Stages())
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
