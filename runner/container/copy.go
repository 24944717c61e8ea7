package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/treetar"
	"github.com/podrun/podrun/internal/wire"
)

// Copy copies files into or out of a running container, as a tar stream over the only descriptor in files.
// It calls skipped for each file that is left out. The ids in archives are the container's: users maps them.
func (x *Container) Copy(ctx context.Context, users *pod.IDRange, req *wire.CopyRequest, files []*os.File, skipped func(string)) error {
	return x.copyBelow(ctx, fmt.Sprintf("/proc/%d/root", x.PID), users, req, files, skipped) // as the container's processes see it, volumes included
}

// copyBelow copies files into or out of a root file system.
func (x *Container) copyBelow(ctx context.Context, dir string, users *pod.IDRange, req *wire.CopyRequest, files []*os.File, skipped func(string)) error {
	if len(files) != 1 {
		return fmt.Errorf("a copy needs 1 descriptor, %d came", len(files))
	}
	stream, err := withDeadline(ctx, files[0])
	if err != nil {
		return err
	}
	defer stream.Close()
	root, err := treetar.OpenForeign(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if users != nil {
		root.MapIDs(users.First, users.Count)
	}
	target := req.Path
	if !strings.HasPrefix(target, "/") {
		target = strings.TrimSuffix(x.Plan.Cwd, "/") + "/" + target
	}
	if !req.In {
		return root.Pack(ctx, stream, target, req.As, skipped)
	}
	return root.Unpack(ctx, stream, target, req.Tar, treetar.Options{
		UID: x.Identity.uid, GID: x.Identity.gid, Owners: req.Owners, Plain: req.Plain, Changes: req.Changes, Skipped: skipped,
	})
}

// withDeadline returns another File of a pipe, whose reads and writes fail once ctx has ended: a suspended
// client must not block the pod.
func withDeadline(ctx context.Context, f *os.File) (*os.File, error) {
	if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
		return nil, fmt.Errorf("take a stream: %w", err)
	}
	d, err := dupFD(int(f.Fd()))
	if err == nil {
		if err = d.SetDeadline(time.Time{}); errors.Is(err, os.ErrNoDeadline) {
			d.Close()
			return nil, errors.New("take a stream: it is no pipe")
		}
		context.AfterFunc(ctx, func() { d.SetDeadline(time.Unix(0, 1)) })
	}
	return d, err
}
