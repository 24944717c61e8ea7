// Package volume has the command volume.
package volume

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdline"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/objects"
)

// NewCommand returns the command volume.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "volume",
		Usage: "list and remove the volumes that stay when their pods go",
		Description: `A PersistentVolumeClaim is a directory. It is made when a pod first uses it and
stays until it is removed: by volume rm, delete pvc or down --volumes.

Examples:
  podrun volume ls
  podrun volume inspect data
  podrun volume rm data
`,
		Subcommands: []*cli.Command{volumeLsCommand(env), volumeRmCommand(env), volumeInspectCommand(env)},
		Action:      cmdline.NeedSubcommand("volume", "volume takes one of ls, rm and inspect"),
	}
}

func volumeLsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the volumes",
		Description: `Lists the claims and their directories. CLAIM is no for a directory whose claim
is gone, USED BY the pods that have the volume.

Examples:
  podrun volume ls
`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cmdutil.UsageErrorf("volume ls", "volume ls takes no arguments")
			}
			dirs, err := env.Dirs()
			if err != nil {
				return err
			}
			list, err := objects.ListVolumes(dirs)
			if err != nil {
				return err
			}
			rows := [][]string{{"NAMESPACE", "NAME", "CLAIM", "USED BY", "PATH"}}
			for _, v := range list {
				claimed, users, path := "no", "<none>", "<none>"
				if v.Claimed {
					claimed = "yes"
				}
				if len(v.UsedBy) > 0 {
					users = strings.Join(v.UsedBy, ",")
				}
				if v.Path != "" {
					path = v.Path
				}
				rows = append(rows, []string{v.Namespace, v.Name, claimed, users, path})
			}
			return env.PrintTable(rows)
		},
	}
}

func volumeInspectCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show what is known of a volume, as JSON",
		ArgsUsage: "NAME...",
		Description: `Shows claims with their directories and the pods that use them.

Examples:
  podrun volume inspect data
`,
		Flags: []cli.Flag{cmdutil.NamespaceFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdutil.UsageErrorf("volume inspect", "volume inspect takes the names of volumes")
			}
			dirs, err := env.Dirs()
			if err != nil {
				return err
			}
			all, err := objects.ListVolumes(dirs)
			if err != nil {
				return err
			}
			found := []*objects.Volume{}
			var errs []error
			for _, name := range c.Args().Slice() {
				v, err := objects.FindVolume(all, objects.ClaimRef{Namespace: c.String("namespace"), Name: name})
				if errs = append(errs, err); err == nil {
					found = append(found, v)
				}
			}
			out := json.NewEncoder(env.Out)
			out.SetIndent("", "  ")
			return errors.Join(append(errs, out.Encode(found))...)
		},
	}
}

func volumeRmCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove volumes with what is in them",
		ArgsUsage: "NAME...",
		Description: `Removes claims with their directories. One that a pod has is kept.

Examples:
  podrun volume rm data
`,
		Flags: []cli.Flag{cmdutil.NamespaceFlag()},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdutil.UsageErrorf("volume rm", "volume rm takes the names of volumes")
			}
			dirs, err := env.Dirs()
			if err != nil {
				return err
			}
			var claims []objects.ClaimRef
			for _, name := range c.Args().Slice() {
				claims = append(claims, objects.ClaimRef{Namespace: c.String("namespace"), Name: name})
			}
			return objects.RemoveVolumes(env, dirs, claims)
		},
	}
}
