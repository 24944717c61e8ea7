// Command image is the image program: registries, signatures and archives of images, compose files and kustomizations,
// without the rest of podrun. The libraries for these are too large for the CLI; one program has the runtime
// of Go only once. scripts/build builds it and embeds it in the podrun binary.
package main

import (
	"maps"
	"os"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/manifest/compose"
	"github.com/podrun/podrun/internal/manifest/kustomize"
	"github.com/podrun/podrun/internal/reexec"
)

func main() {
	entryPoints := server.EntryPoints()
	maps.Copy(entryPoints, compose.EntryPoints())
	maps.Copy(entryPoints, kustomize.EntryPoints(compose.Bound))
	reexec.Main(entryPoints)
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
