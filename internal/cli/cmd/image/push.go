package image

import (
	"context"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
)

func imagePushCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "write an image to a registry",
		ArgsUsage: "IMAGE [DESTINATION]",
		Description: `Writes an image to the registry in its name, or to another name, and prints
REPOSITORY@DIGEST, by which the image can be pulled. Layers that the repository
has are not sent again. Layers are compressed again, so the digest may differ
from the pulled image's; its ID stays. Logins are from
podrun login, podman or docker.

Examples:
  podrun image push registry.example.org/team/web:1.4
  podrun image push localhost/web registry.example.org/team/web:1.4
  podrun image push --tls-verify=false web:1.4 192.168.1.5:5000/web:1.4
`,
		Flags:  []cli.Flag{cmdutil.AuthfileFlag(), cmdutil.TLSVerifyFlag()},
		Action: func(c *cli.Context) error { return runPush(env, c) },
	}
}

func runPush(env *cmdutil.Env, c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return cmdutil.UsageErrorf("image push", "image push requires the name of one image, and optionally its name in the registry")
	}
	options, err := env.PullOptions(c)
	if err != nil {
		return err
	}
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	shown := progress.New(env, "pushing")
	options.Progress = shown.Update
	shown.Wait("pushing %s", c.Args().Get(0))
	return cmdutil.Interruptible(c.Context, signals, func(ctx context.Context) error {
		there, err := s.Push(ctx, c.Args().Get(0), c.Args().Get(1), options)
		shown.End()
		if err == nil {
			fmt.Fprintln(env.Out, there)
		}
		return err
	})
}
