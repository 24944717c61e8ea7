// Command image is the image program: registries, signatures and archives of images, without the rest of
// podrun. scripts/build builds it and embeds it in the podrun binary.
package main

import (
	"os"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/reexec"
)

func main() {
	reexec.Main(server.EntryPoints())
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
