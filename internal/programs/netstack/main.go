// Command netstack has what podrun does with packets in user space, without the rest of podrun: the network
// stack, and WireGuard. scripts/build builds it and embeds it in the podrun binary.
package main

import (
	"maps"
	"os"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/netns/netstack"
	"github.com/podrun/podrun/netns/wireguard"
)

func main() {
	entryPoints := netstack.EntryPoints()
	maps.Copy(entryPoints, wireguard.EntryPoints())
	reexec.Main(entryPoints)
	os.Stderr.WriteString("podrun: this program is started by podrun, not by hand\n")
	os.Exit(2)
}
