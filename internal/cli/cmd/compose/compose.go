// Package compose has the command compose. Each subcommand has the words of docker compose; it finds the project, and runs
// the commands of podrun that do the work. The pods of a project have its name in a label.
package compose

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// NewCommand returns the command compose.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "compose",
		Usage: "run compose files with the commands of docker compose",
		Description: `Runs the services of compose files as pods. Without -f it uses compose.yaml,
compose.yml, docker-compose.yml or docker-compose.yaml of the directory or of
one above it, and its override file. The options may stand before the
subcommand, too. A project is known by its name: ps, logs, exec, stop, start,
restart and down need no file.

podrun's own commands apply to the pods, too: podrun describe web.

Examples:
  podrun compose up -d
  podrun compose ps
  podrun compose logs -f web
  podrun compose -f compose.yaml -f compose.prod.yaml up -d --build
  podrun compose down -v
`,
		Flags: projectFlags("f"),
		Subcommands: []*cli.Command{
			upCommand(env), downCommand(env), psCommand(env), logsCommand(env), stopCommand(env), startCommand(env), restartCommand(env),
			execCommand(env), runCommand(env), pullCommand(env), configCommand(env), lsCommand(env),
		},
		Action: cmdline.NeedSubcommand("compose", "compose requires one of up, down, ps, logs, stop, start, restart, exec, run, pull, config and ls"),
	}
}

// projectFlags returns the flags that all subcommands have. fileAliases are the short names of --file.
func projectFlags(fileAliases ...string) []cli.Flag {
	return []cli.Flag{
		cmdutil.NamespaceFlag(),
		&cli.StringSliceFlag{Name: "file", Aliases: fileAliases, Usage: "use this compose `FILE`; several are merged in their order (- is standard input)"},
		&cli.StringFlag{Name: "project-name", Aliases: []string{"p"}, Usage: "the `NAME` of the project ($COMPOSE_PROJECT_NAME, name in the file, or the directory's if not given)"},
		&cli.StringFlag{Name: "project-directory", Usage: "the `DIRECTORY` of relative paths and of .env (the first file's if not given)"},
		&cli.StringSliceFlag{Name: "profile", Usage: "include the services of this `PROFILE` ($COMPOSE_PROFILES if not given)"},
		&cli.StringSliceFlag{Name: "env-file", Usage: "read variables for ${VARIABLE} from this `FILE`, not from .env"},
	}
}

// flagsWith returns the flags of a subcommand.
func flagsWith(more ...cli.Flag) []cli.Flag { return append(projectFlags("f"), more...) }

// options are what all subcommands have.
type options struct {
	env       *cmdutil.Env
	command   string
	namespace string
	request   api.Request
	words     []string // mostly names of services
}

// complete reads the flags of the project and the words.
func (o *options) complete(c *cli.Context) {
	o.command, o.namespace, o.words = "compose "+c.Command.Name, c.String("namespace"), c.Args().Slice()
	o.request = api.Request{
		Files: c.StringSlice("file"), Project: c.String("project-name"), Directory: c.String("project-directory"),
		Profiles: c.StringSlice("profile"), EnvFiles: c.StringSlice("env-file"),
	}
	if o.request.Project == "" {
		o.request.Project = o.env.Getenv("COMPOSE_PROJECT_NAME")
	}
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.complete(c)
	return nil
}

// Validate does nothing: the words are mostly names, which the lookup checks.
func (o *options) Validate() error { return nil }

// again runs another command of podrun in the namespace. Its error, if any, is already reported.
func (o *options) again(with cmdutil.Compose, command string, words ...string) error {
	env := *o.env
	env.Compose = with
	line := []string{command}
	if env.NamespaceFlag != "" {
		line = append(line, "--namespace", env.NamespaceFlag)
	}
	return env.RunAgain(append(line, words...)...)
}

// messages returns the options for a command whose output is not the result: it goes to standard error.
func (o *options) messages() *options {
	env := *o.env
	env.Out = env.ErrOut
	return &options{env: &env}
}

// passedOn maps flags that are passed on to another command of podrun to that command's names of them.
type passedOn map[string]string

// complete returns the words of the flags that are set.
func (p passedOn) complete(c *cli.Context) (words []string) {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		other, is := p[name]
		switch {
		case !is || !c.IsSet(name):
		case c.StringSlice(name) != nil:
			for _, value := range c.StringSlice(name) {
				words = append(words, "--"+other+"="+value)
			}
		default:
			words = append(words, "--"+other+"="+c.String(name))
		}
	}
	return words
}
