// Package explain has the command explain.
package explain

import (
	"cmp"
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/manifest/explain"
)

// NewCommand returns the command explain.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "describe a field of a manifest",
		ArgsUsage: "KIND[.FIELD...]",
		Description: `Describes a kind, or a field by its path, with Kubernetes' own text, and how
podrun supports it: supported, accepted (read and stored, without effect) or
refused.

Examples:
  podrun explain pod.spec.containers.livenessProbe
  podrun explain deployments.spec.strategy
  podrun explain cronjob --recursive
`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "recursive", Aliases: []string{"R"}, Usage: "list the names of all fields below, without their texts"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of explain.
type options struct {
	env       *cmdutil.Env
	words     []string
	recursive bool
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.words, o.recursive = c.Args().Slice(), c.Bool("recursive")
	return nil
}

// Validate checks the number of arguments.
func (o *options) Validate() error {
	if len(o.words) != 1 {
		return cmdutil.UsageErrorf("explain", "explain requires one kind or field, such as pod.spec.containers")
	}
	return nil
}

// Run prints the page.
func (o *options) Run(context.Context) error {
	word, rest, _ := strings.Cut(o.words[0], ".")
	kinds := kindnames.Lookup(word)
	if len(kinds) != 1 {
		return cmp.Or(kindnames.UnsupportedError(word), kindnames.UnknownError(word))
	}
	var path []string
	for name := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '.' }) {
		name, _, _ = strings.Cut(name, "[") // as in messages: containers[0]
		path = append(path, name)
	}
	text, err := explain.Page(cmp.Or(string(kinds[0]), "Pod"), path, o.recursive)
	if err != nil {
		return err
	}
	return o.env.WriteSafe([]byte(text))
}
