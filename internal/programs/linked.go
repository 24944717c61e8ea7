//go:build !embedprograms

package programs

import (
	"fmt"
	"maps"
	"os"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/manifest/compose"
	"github.com/podrun/podrun/internal/manifest/kustomize"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/netstack"
	"github.com/podrun/podrun/netns/wireguard"
	"github.com/podrun/podrun/runner"
)

// Libraries is empty: the programs' modules are part of this program.
const Libraries = ""

// EntryPoints returns the entry points of the other programs: this program runs them itself.
func EntryPoints() map[string]func([]string) int {
	entryPoints := runner.EntryPoints()
	maps.Copy(entryPoints, netstack.EntryPoints())
	maps.Copy(entryPoints, wireguard.EntryPoints())
	maps.Copy(entryPoints, server.EntryPoints())
	maps.Copy(entryPoints, compose.EntryPoints())
	maps.Copy(entryPoints, kustomize.EntryPoints(compose.Bound))
	return entryPoints
}

// FindPodProgram returns the pod program, which is this one.
func FindPodProgram(store.Dirs) (string, bool) {
	path, err := os.Executable()
	return path, err == nil
}

// PodProgram returns this program.
func PodProgram(store.Dirs) (path string, executed func(), err error) {
	return "/proc/self/exe", func() {}, nil
}

// Image returns this program.
func Image(store.Dirs) (path string, started func(), err error) {
	return "/proc/self/exe", func() {}, nil
}

// ImageInMemory returns this program.
func ImageInMemory(d store.Dirs) (path string, started func(), err error) { return Image(d) }

// Programs returns this program.
func Programs(store.Dirs) (podinit.Programs, error) {
	path, err := os.Executable()
	if err != nil {
		return podinit.Programs{}, fmt.Errorf("find podrun's own program: %w", err)
	}
	return podinit.Programs{Pod: path, Supervisor: path, Netstack: path}, nil
}
