package cli

import (
	"fmt"
	"os"
	"runtime"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/manifest"
)

// options is what a pod that is built now has to know of its machine.
func (l *launch) options() (manifest.Options, error) {
	memory, err := host.MemoryTotal()
	if err != nil {
		return manifest.Options{}, err
	}
	node, err := os.Hostname()
	if err != nil {
		return manifest.Options{}, fmt.Errorf("find the machine's name: %w", err)
	}
	disk, err := host.StatFS(l.dirs.Data)
	if err != nil {
		return manifest.Options{}, err
	}
	return manifest.Options{
		UID: newUID(), NodeName: node,
		NodeCPU: int64(runtime.NumCPU()) * 1000, NodeMemory: memory, NodeStorage: int64(disk.Size),
		RequireLimits: l.requireLimits,
	}, nil
}
