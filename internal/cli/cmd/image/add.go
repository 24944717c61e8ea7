package image

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod"
)

func imageLoadCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "add the images of an archive",
		ArgsUsage: "FILE... | DIR",
		Description: `Adds every image of an OCI archive, a docker archive (docker save, podman save,
skopeo copy) or an OCI layout directory, under the names in it. Archives may be
compressed with gzip or zstd; - is standard input, which is also read without a
FILE if it is a file or a pipe. From any other directory, such as a USB stick,
it loads all archives and layouts in it.

Examples:
  podrun image load web.tar
  podrun image load -i web.tar
  podrun image load < web.tar
  podman save busybox | podrun image load -
  podrun image load ./oci-layout
  podrun image load /media/stick
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "input", Aliases: []string{"i"}, Usage: "load this `FILE`, as with docker and podman"},
		},
		Action: func(c *cli.Context) error {
			files := append(c.StringSlice("input"), c.Args().Slice()...)
			if len(files) == 0 && stdinRedirected(env) {
				files = []string{"-"}
			}
			if len(files) == 0 {
				return cmdutil.UsageErrorf("image load", "image load requires the files of archives")
			}
			return addImages(c.Context, env, "loading", files, func(ctx context.Context, s *image.Store, file string, onProgress func(image.Progress)) ([]pod.Image, error) {
				return s.LoadAll(ctx, input(file), onProgress)
			})
		},
	}
}

// NewPullCommand returns the command image pull.
func NewPullCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "fetch images from a registry",
		ArgsUsage: "IMAGE...",
		Description: `Pulls images; layers that exist here are not fetched again. An interrupted pull
resumes. Mirrors, blocked and insecure registries and short names are from
registries.conf(5), logins from podrun login, podman or docker;
policy.json(5) decides which images are allowed. Images can also come from
files, named as in skopeo and podman: docker-archive:FILE, oci-archive:FILE,
oci:DIR and dir:DIR.

Examples:
  podrun image pull busybox
  podrun image pull registry.example.org/team/web:1.4
  podrun image pull --tls-verify=false 192.168.1.5:5000/web
  podrun image pull oci:./layout:web
`,
		Flags: []cli.Flag{cmdutil.AuthfileFlag(), cmdutil.TLSVerifyFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdutil.UsageErrorf("image pull", "image pull requires the names of images")
			}
			options, err := env.PullOptions(c)
			if err != nil {
				return err
			}
			return addImages(c.Context, env, "fetching", c.Args().Slice(), func(ctx context.Context, s *image.Store, ref string, onProgress func(image.Progress)) ([]pod.Image, error) {
				options.Progress = onProgress
				location, err := image.ParseLocation(ref)
				if err != nil {
					return nil, err
				}
				return s.Fetch(ctx, location, options)
			})
		},
	}
}

func imageImportCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "create an image from a root file system",
		ArgsUsage: "ROOTFS.tar NAME",
		Description: `Creates an image of one layer from a tar of a root file system, which may be
compressed with gzip or zstd; - is standard input. It has no entrypoint: the
manifest sets the command.

Examples:
  podrun image import rootfs.tar.gz mybase:1
  tar c -C /srv/chroot . | podrun image import - debian
`,
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return cmdutil.UsageErrorf("image import", "image import requires a tar file and a name for the image")
			}
			return addImages(c.Context, env, "importing", c.Args().Slice()[:1], func(ctx context.Context, s *image.Store, file string, _ func(image.Progress)) ([]pod.Image, error) {
				img, err := s.Import(ctx, input(file), c.Args().Get(1))
				if err != nil {
					return nil, err
				}
				return []pod.Image{img}, nil
			})
		},
	}
}

// addImages calls add for each word and displays the progress, where verb names the operation. It prints the
// name of each image, or its ID if it has no name. Ctrl-C ends it; images that are complete by then stay.
func addImages(ctx context.Context, env *cmdutil.Env, verb string, words []string, add func(ctx context.Context, s *image.Store, word string, onProgress func(image.Progress)) ([]pod.Image, error)) error {
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	s, err := env.ImageStore()
	if err == nil {
		err = imagegc.Collect(env, dirs, s)
	}
	if err != nil {
		return err
	}
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	shown := progress.New(env, verb)
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		var images []pod.Image
		var errs []error
		for _, word := range words {
			shown.Wait("%s %s", verb, word)
			added, err := add(ctx, s, word, shown.Update)
			images, errs = append(images, added...), append(errs, err)
		}
		shown.End()
		for _, img := range images {
			name := img.Name
			if name == "" {
				name = img.ID
			}
			fmt.Fprintln(env.Out, name)
		}
		return errors.Join(errs...)
	})
}
