package cli

import "github.com/urfave/cli/v2"

func (f *front) systemdCommand() *cli.Command {
	return &cli.Command{
		Name:  "systemd",
		Usage: "run pods as units of systemd",
		Description: `Makes units of systemd from manifests of pods and from Quadlet's .kube files, so
that pods start with the machine and are looked after.

Examples:
  podrun systemd install --now web.yaml
  systemctl --user status podrun@web
  journalctl --user -u podrun@web
`,
		Subcommands: []*cli.Command{f.installCommand(), f.uninstallCommand(), f.showUnitCommand(), f.stopPostCommand()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c.Command.Subcommands, "podrun systemd", c.Args().First())
			}
			return usageErrorf("systemd", "systemd takes one of install, uninstall and show")
		},
	}
}
