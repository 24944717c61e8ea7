package image

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/report"
)

func imageVerifyCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check the files of images against their digests",
		ArgsUsage: "[IMAGE...]",
		Description: `Reads every file of the images (default: of all images) and compares content,
owner, mode and links with the digests. It needs no network. A damaged image is
not used for another pod; pods that run from it continue.

With --repair damaged layers are pulled from the registry again. Running pods
keep their files until a container restarts. podrun image load repairs an image
that came from an archive.

Examples:
  podrun image verify
  podrun image verify --repair
  podrun image verify docker.io/library/busybox:1.36
`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "repair", Usage: "pull damaged layers again"},
			cmdutil.TLSVerifyFlag(),
		},
		Action: func(c *cli.Context) error { return runVerify(env, c) },
	}
}

func runVerify(env *cmdutil.Env, c *cli.Context) error {
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(c.Context, signals, func(ctx context.Context) error {
		shown := progress.New(env, "")
		shown.Wait("verifying images")
		list, err := s.Verify(ctx, c.Args().Slice(), func(name string) { shown.Wait("verifying %s", name) })
		shown.End()
		if err != nil {
			return err
		}
		var errs []error
		damaged := 0
		for i := range list {
			v := &list[i]
			if len(v.Damage) == 0 {
				fmt.Fprintf(env.Out, "%s ok\n", report.Escape(v.Name()))
				continue
			}
			for _, d := range v.Damage {
				fmt.Fprintf(env.Out, "%s %s\n", report.Escape(v.Name()), report.Escape(d.String()))
			}
			if !c.Bool("repair") {
				damaged++
				continue
			}
			if err := repair(ctx, env, c, s, *v); err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(env.Out, "%s repaired\n", report.Escape(v.Name()))
		}
		if damaged > 0 {
			errs = append(errs, report.New(report.Failure, "podrun image verify --repair pulls them again; podrun image load FILE restores images of an archive", "%d of %d images are damaged", damaged, len(list)))
		}
		return errors.Join(errs...)
	})
}

func repair(ctx context.Context, env *cmdutil.Env, c *cli.Context, s *image.Store, v image.Verified) error {
	shown := progress.New(env, "fetching")
	defer shown.End()
	o, err := env.PullOptions(c)
	if err != nil {
		return err
	}
	o.Progress = shown.Update
	shown.Wait("repairing %s", v.Name())
	return s.Repair(ctx, v, o)
}
