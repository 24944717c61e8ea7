package cli

import (
	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
)

func (f *front) createNamespaceCommand() *cli.Command {
	return &cli.Command{
		Name: "namespace", Aliases: []string{"ns"},
		Usage:     "make a namespace",
		ArgsUsage: "NAME",
		Description: `Makes a namespace. Pods and objects need none to be in it: it is for labels,
such as those that hold its pods to a Pod Security Standard.

Examples:
  podrun create namespace web
  podrun create ns web --dry-run -o yaml
`,
		Flags: createFlags()[1:], // it is in none itself
		Action: func(c *cli.Context) error {
			return f.create(c, "Namespace", &corev1.Namespace{TypeMeta: about("Namespace")})
		},
	}
}
