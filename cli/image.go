package cli

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/store"
)

func (f *front) imageCommand() *cli.Command {
	return &cli.Command{
		Name:  "image",
		Usage: "bring images onto this machine, list and remove them",
		Description: `Pods run from images that are on this machine. They come from a registry (pull),
an archive (load) or the root file system of a machine or container (import).
podrun up pulls what is missing by itself, unless imagePullPolicy is Never. When
the disk is 85 % full, images that were pulled and that nothing uses are
removed, the ones not used for longest first, until it is 80 %.

Examples:
  podrun image load busybox.tar
  podrun image pull docker.io/library/busybox:1.36
  podrun image ls
`,
		Subcommands: []*cli.Command{
			f.imageLoadCommand(), f.imagePullCommand(), f.imageImportCommand(), f.imageSaveCommand(), f.imageLsCommand(), f.imageInspectCommand(),
			f.imageHistoryCommand(), f.imageTagCommand(), f.imageRmCommand(), f.imagePruneCommand(), f.imageVerifyCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, "podrun image", c.Args().First())
			}
			return usageErrorf("image", "image takes one of load, pull, import, save, ls, inspect, history, tag, rm, prune and verify")
		},
	}
}

// store opens the image store.
func (f *front) store() (*image.Store, error) {
	dirs, err := f.dirs()
	if err != nil {
		return nil, err
	}
	return openImages(dirs)
}

// openImages opens the store of a process that brings images onto this machine, which is
// to be small.
func openImages(dirs store.Dirs) (*image.Store, error) {
	debug.SetMemoryLimit(image.Memory)
	return image.Open(dirs.Images())
}

// redirected says whether standard input is a file or a pipe: somebody has meant it to be read.
func (f *front) redirected() bool {
	in, ok := f.in.(*os.File)
	if !ok {
		return false
	}
	st, err := in.Stat()
	return err == nil && (st.Mode().IsRegular() || st.Mode()&os.ModeNamedPipe != 0)
}

// input is the path of an archive; "-" is standard input.
func input(word string) string {
	if word == "-" {
		return "/dev/stdin"
	}
	return word
}
