// Package systemd has the command systemd, which makes units from manifests.
package systemd

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// NewCommand returns the command systemd.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "systemd",
		Usage: "run pods as systemd units",
		Description: `Creates systemd units from manifests of pods and from files of podman's Quadlet,
so that pods start at boot and systemd supervises them.

Examples:
  podrun systemd install --now web.yaml
  systemctl --user status podrun@web
  journalctl --user -u podrun@web
`,
		Subcommands: []*cli.Command{installCommand(env), installNodeCommand(env), installFollowCommand(env), uninstallCommand(env), showUnitCommand(env), generateCommand(env), stopPostCommand(env)},
		Action:      cmdline.NeedSubcommand("systemd", "systemd requires one of install, install-node, install-follow, uninstall, show and generate"),
	}
}
