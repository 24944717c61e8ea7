package cli

import (
	"fmt"
	"os"
	"runtime"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/manifest"
)

// options is what a pod that is built now has to know of its machine.
func (l *launch) options() (manifest.BuildOptions, error) {
	memory, err := host.MemoryTotal()
	if err != nil {
		return manifest.BuildOptions{}, err
	}
	node, err := os.Hostname()
	if err != nil {
		return manifest.BuildOptions{}, fmt.Errorf("find the machine's name: %w", err)
	}
	disk, err := host.StatFS(l.dirs.Data)
	if err != nil {
		return manifest.BuildOptions{}, err
	}
	return manifest.BuildOptions{
		UID: newUID(), NodeName: node,
		NodeCPU: int64(runtime.NumCPU()) * 1000, NodeMemory: memory, NodeStorage: int64(disk.Size),
		RequireLimits: l.requireLimits,
	}, nil
}
