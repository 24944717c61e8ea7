// Command netstack is podrun's network stack in user space, without the rest of podrun.
// scripts/build builds it and embeds it in the podrun binary.
package main

import (
	"os"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/netns/netstack"
)

func main() {
	reexec.Main(netstack.EntryPoints())
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
