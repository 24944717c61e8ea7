// Package volume has the command volume.
package volume

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/objects"
)

// NewCommand returns the command volume.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "volume",
		Usage: "list and remove PersistentVolumeClaims",
		Description: `A PersistentVolumeClaim is a directory. It is created when a pod first uses it
and stays until it is removed: by volume rm, delete pvc or down --volumes. A
claim that is bound to a PersistentVolume has that one's directory, which stays.

Examples:
  podrun volume ls
  podrun volume inspect data
  podrun volume rm data
`,
		Subcommands: []*cli.Command{volumeLsCommand(env), volumeRmCommand(env), volumeInspectCommand(env)},
		Action:      cmdline.NeedSubcommand("volume", "volume requires one of ls, rm and inspect"),
	}
}

func volumeLsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the volumes",
		Description: `Lists the claims and their directories. CLAIM is "no" for a directory without a
claim; USED BY lists the pods that use it.

Examples:
  podrun volume ls
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &lsOptions{env: env} }),
	}
}

func volumeInspectCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show the details of a volume, as JSON",
		ArgsUsage: "NAME...",
		Description: `Shows claims with their directories and the pods that use them.

Examples:
  podrun volume inspect data
`,
		Flags:  []cli.Flag{cmdutil.NamespaceFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &inspectOptions{namesOptions{env: env}} }),
	}
}

func volumeRmCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove volumes with their files",
		ArgsUsage: "NAME...",
		Description: `Removes claims with their directories. A claim that a pod uses is kept.

Examples:
  podrun volume rm data
`,
		Flags:  []cli.Flag{cmdutil.NamespaceFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return &rmOptions{namesOptions{env: env}} }),
	}
}

// lsOptions are the command line of volume ls.
type lsOptions struct {
	env   *cmdutil.Env
	words []string
}

// Complete implements cmdutil.Command.
func (o *lsOptions) Complete(c *cli.Context) error {
	o.words = c.Args().Slice()
	return nil
}

// Validate implements cmdutil.Command.
func (o *lsOptions) Validate() error {
	if len(o.words) > 0 {
		return cmdutil.UsageErrorf("volume ls", "volume ls accepts no arguments")
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *lsOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	list, err := objects.ListVolumes(dirs)
	if err != nil {
		return err
	}
	rows := [][]string{{"NAMESPACE", "NAME", "CLAIM", "USED BY", "PATH"}}
	for _, v := range list {
		claimed := "no"
		if v.Claimed {
			claimed = "yes"
		}
		rows = append(rows, []string{v.Namespace, v.Name, claimed, strings.Join(v.UsedBy, ","), v.Path})
	}
	return o.env.PrintTable(rows)
}

// namesOptions are the command line of a command that takes the names of volumes.
type namesOptions struct {
	env     *cmdutil.Env
	command string
	claims  []objects.ClaimRef
}

// Complete implements cmdutil.Command.
func (o *namesOptions) Complete(c *cli.Context) error {
	o.command = "volume " + c.Command.Name
	for _, name := range c.Args().Slice() {
		o.claims = append(o.claims, objects.ClaimRef{Namespace: c.String("namespace"), Name: name})
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *namesOptions) Validate() error {
	if len(o.claims) == 0 {
		return cmdutil.UsageErrorf(o.command, "%s requires the names of volumes", o.command)
	}
	return nil
}

type inspectOptions struct{ namesOptions }

// Run implements cmdutil.Command.
func (o *inspectOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	all, err := objects.ListVolumes(dirs)
	if err != nil {
		return err
	}
	found := []*objects.Volume{}
	var errs []error
	for _, claim := range o.claims {
		v, err := objects.FindVolume(all, claim)
		if errs = append(errs, err); err == nil {
			found = append(found, v)
		}
	}
	out := json.NewEncoder(o.env.Out)
	out.SetIndent("", "  ")
	return errors.Join(append(errs, out.Encode(found))...)
}

type rmOptions struct{ namesOptions }

// Run implements cmdutil.Command.
func (o *rmOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	return objects.RemoveVolumes(o.env, dirs, o.claims)
}
