package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/image"
)

func (f *front) imageLsCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the images on this machine",
		Description: `Lists the images, the last one added first. SIZE is that of the files of all
layers; images share layers.

Examples:
  podrun image ls
`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageErrorf("image ls", "image ls takes no arguments")
			}
			s, err := f.store()
			if err != nil {
				return err
			}
			list, err := s.List()
			return errors.Join(f.printImages(list, time.Now()), err)
		},
	}
}

func (f *front) printImages(list []image.Info, now time.Time) error {
	rows := [][]string{{"NAME", "ID", "ADDED", "SIZE"}}
	for _, i := range list {
		id := strings.TrimPrefix(i.ID, "sha256:")
		added := duration.HumanDuration(max(now.Sub(i.Added), 0)) + " ago"
		names := i.Names
		if len(names) == 0 {
			names = []string{"<none>"}
		}
		for _, name := range names {
			rows = append(rows, []string{name, id[:min(12, len(id))], added, size(i.Size)})
		}
	}
	return f.table(rows)
}

func (f *front) imageRmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove images",
		ArgsUsage: "IMAGE...",
		Description: `Removes names of images, and an image with its last name. Layers that a pod
still uses stay until the pod is gone and another image is removed.

Examples:
  podrun image rm busybox:1.36
  podrun image rm 4a1b6c
`,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usageErrorf("image rm", "image rm takes the names or ids of images")
			}
			dirs, err := f.dirs()
			if err != nil {
				return err
			}
			s, err := image.Open(dirs.Images())
			if err != nil {
				return err
			}
			var errs []error
			for _, word := range c.Args().Slice() {
				u := f.imageUse(dirs)
				errs = append(errs, s.Remove(word, image.RemoveOptions{InUse: u.layer}), u.err)
			}
			return errors.Join(errs...)
		},
	}
}
