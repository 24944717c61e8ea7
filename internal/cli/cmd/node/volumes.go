package node

import (
	"errors"
	"fmt"
)

// MakeVolume implements node.Engine.
func (e *engine) MakeVolume(name string) (string, error) { return e.dirs.MakeProvisioned(name) }

// RemoveVolume implements node.Engine.
func (e *engine) RemoveVolume(name, dir string) error {
	own, err := e.dirs.ProvisionedDir(name)
	if err == nil && dir != own {
		err = errors.New("podrun did not make it")
	}
	if err != nil {
		return fmt.Errorf("remove volume %s: %w", dir, err)
	}
	return e.launcher.RemoveVolume(dir)
}
