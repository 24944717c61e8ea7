// Command netstack contains two processes that handle packets in user space: the network stack of a pod (entry
// point _netstack), and WireGuard between nodes (entry point _wireguard). scripts/build builds it and embeds it in the podrun binary.
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
