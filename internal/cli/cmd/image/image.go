// Package image has the commands for images and registries: image, login and logout.
package image

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// NewCommand returns the command image.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "image",
		Usage: "pull, load, list and remove images",
		Description: `Pods run from local images. They come from a registry (pull), an archive (load)
or the root file system of a machine or container (import). podrun up pulls
missing images by itself, unless imagePullPolicy is Never. When the disk is 85 %
full, pulled images that nothing uses are removed, the least recently used
first, until it is 80 % full.

Examples:
  podrun image load busybox.tar
  podrun image pull docker.io/library/busybox:1.36
  podrun image ls
`,
		Subcommands: []*cli.Command{
			imageLoadCommand(env), NewPullCommand(env), imageImportCommand(env), imageSaveCommand(env), imagePushCommand(env), NewLsCommand(env), imageInspectCommand(env),
			imageHistoryCommand(env), imageTagCommand(env), NewRmCommand(env), imagePruneCommand(env), imageVerifyCommand(env),
		},
		Action: cmdline.NeedSubcommand("image", "image requires one of load, pull, import, save, push, ls, inspect, history, tag, rm, prune and verify"),
	}
}

// stdinRedirected reports whether standard input is a file or a pipe, and so is meant to be read.
func stdinRedirected(env *cmdutil.Env) bool {
	in, ok := env.In.(*os.File)
	if !ok {
		return false
	}
	st, err := in.Stat()
	return err == nil && (st.Mode().IsRegular() || st.Mode()&os.ModeNamedPipe != 0)
}

// input returns the path of an archive; "-" is standard input.
func input(word string) string {
	if word == "-" {
		return "/dev/stdin"
	}
	return word
}
