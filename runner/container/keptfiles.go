package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// A container with KeepFiles has the files that the instance before it has written: the writable layer is moved away when
// an instance is removed, and into the root file system of the next one.

// keptFiles returns where the files that an instance has written are kept for the next one of the same image.
func (x *Container) keptFiles(s *sandbox.Sandbox) string {
	image := sha256.Sum256([]byte(x.Plan.ImageID))
	return x.keptPrefix(s) + hex.EncodeToString(image[:8])
}

func (x *Container) keptPrefix(s *sandbox.Sandbox) string {
	return filepath.Join(s.Pod.RootfsDir(), x.Plan.Name+".kept-") // no name of an instance has a dot
}

// mountRootfs mounts the root file system of an instance, with the files of the one before it if they are kept.
func (x *Container) mountRootfs(s *sandbox.Sandbox, layers []string) (string, error) {
	layers = x.withMountPoints(s, layers)
	if !x.Plan.KeepFiles {
		return volumes.MountRootfs(x.Rootfs(s), layers, false, x.Plan.FileLabel) // libcontainer makes it read-only after all mount targets exist
	}
	s.KeptFiles.Lock()
	defer s.KeptFiles.Unlock()
	kept := x.keptFiles(s)
	of, err := filepath.Glob(x.keptPrefix(s) + "*")
	for _, dir := range of {
		if dir != kept { // of an earlier image
			err = errors.Join(err, volumes.RemoveTree(dir))
		}
	}
	if err != nil {
		return "", fmt.Errorf("remove files of an earlier image: %w", err)
	}
	return volumes.MountRootfsAgain(x.Rootfs(s), layers, x.Plan.FileLabel, kept)
}

func (x *Container) unmountRootfs(s *sandbox.Sandbox) error {
	if x.Plan.KeepFiles {
		s.KeptFiles.Lock()
		defer s.KeptFiles.Unlock()
		if err := volumes.KeepRootfs(x.Rootfs(s), x.keptFiles(s)); err != nil {
			return fmt.Errorf("keep the files of container %s: %w", x.Plan.Name, err)
		}
	}
	return volumes.UnmountRootfs(x.Rootfs(s))
}

// ErrNoKeptFiles means that a container that does not run has no files into which something could be copied.
var ErrNoKeptFiles = errors.New("it has kept no files")

// CopyToKept copies files to the kept files of a container that does not run, for its next instance. files is the tar
// stream.
func (x *Container) CopyToKept(ctx context.Context, s *sandbox.Sandbox, users *pod.IDRange, req *wire.CopyRequest, files []*os.File, skipped func(string)) (err error) {
	c := x.Plan
	if !c.KeepFiles || x.isMounted(req.Path) {
		return ErrNoKeptFiles
	}
	s.KeptFiles.Lock()
	defer s.KeptFiles.Unlock()
	kept := x.keptFiles(s)
	if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) { // an instance is being made, or was never made
		return ErrNoKeptFiles
	}
	layers, err := s.Layers(c.Layers)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.Pod.RootfsDir(), c.Name+".copy")
	root, err := volumes.MountRootfsAgain(dir, x.withMountPoints(s, layers), c.FileLabel, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, volumes.KeepRootfs(dir, kept), volumes.UnmountRootfs(dir)) }()
	if x.Identity, err = resolveUser(root, c, s.IDMapped); err != nil {
		return err
	}
	return x.copyBelow(ctx, root, users, req, files, skipped)
}

// isMounted reports whether a path is in a volume.
func (x *Container) isMounted(path string) bool {
	for _, m := range x.Plan.Mounts {
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(m.Path, "/")); below && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
