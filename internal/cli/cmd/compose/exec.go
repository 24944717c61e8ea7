package compose

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/imagebuild"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

// commandFlags are the flags of exec and run.
func commandFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "no-tty", Aliases: []string{"no-TTY", "T"}, Usage: "give the command no terminal (it has one if standard input and output are one)"},
		&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; NAME alone takes the value from podrun's own environment"},
		&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "run it as this `USER[:GROUP]`"},
		&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "run it in this `DIRECTORY` of the container"},
	}
}

func execCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command in the container of a service", ArgsUsage: "SERVICE COMMAND [ARG...]",
		Description: `Runs a command in a running container, as podrun exec -it does, and exits with
its exit code. Options stand before the service; what follows it is the command.

Examples:
  podrun compose exec web sh
  podrun compose exec -T db pg_dump shop >dump.sql
`,
		Flags:  flagsWith(commandFlags()...),
		Action: cmdutil.Action(func() cmdutil.Command { return &execOptions{options: options{env: env}} }),
	}
}

type execOptions struct {
	options
	noTTY bool
	flags []string // for podrun's command
}

func (o *execOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.noTTY = c.Bool("no-tty")
	o.flags = passedOn{"env": "env", "user": "user", "workdir": "workdir"}.complete(c)
	if len(o.words) > 1 && o.words[1] == "--" {
		o.words = slices.Delete(o.words, 1, 2)
	}
	return nil
}

func (o *execOptions) Validate() error {
	if len(o.words) < 2 {
		return cmdutil.UsageErrorf(o.command, "%s requires a service and a command", o.command)
	}
	return nil
}

// streams returns the flags that connect the user's input and terminal.
func (o *execOptions) streams() (words []string) {
	_, in := tty.File(o.env.In)
	_, out := tty.File(o.env.Out)
	if !o.noTTY && in && out {
		words = append(words, "--tty")
	}
	return words
}

func (o *execOptions) Run(context.Context) error {
	_, pods, err := o.selected(o.words[:1], false)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pods, func(m member) bool { return m.Alive() })
	if i < 0 {
		return exitcode.InContainer(report.New(report.Failure, "podrun compose up -d "+o.words[0]+" runs it", "service %s does not run", o.words[0]))
	}
	line := append(slices.Concat(o.flags, o.streams()), "--stdin", "--container="+pods[i].container, pods[i].Name, "--")
	return o.again(cmdutil.Compose{}, "exec", append(line, o.words[1:]...)...)
}

func runCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run a command in a new pod of a service", ArgsUsage: "SERVICE [COMMAND [ARG...]]",
		Description: `Runs the service's image with its settings and another command in a pod of its
own, without its ports, and exits with the command's exit code. What the service
depends on is started first, and keeps running. Options stand before the
service; what follows it is the command. The pod stays unless --rm is given;
podrun compose down removes it.

Examples:
  podrun compose run --rm web ./manage.py migrate
  podrun compose run --rm --no-deps -e DEBUG=1 web sh
`,
		Flags: flagsWith(append(commandFlags(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the container runs, and print the pod's name"},
			&cli.BoolFlag{Name: "rm", Usage: "remove the pod when it has ended"},
			&cli.BoolFlag{Name: "no-deps", Usage: "start nothing that the service depends on"},
			&cli.BoolFlag{Name: "build", Usage: "build the image even if nothing has changed"},
			cmdutil.BuilderFlag(),
		)...),
		Action: cmdutil.Action(func() cmdutil.Command { return &runOptions{execOptions: execOptions{options: options{env: env}}} }),
	}
}

type runOptions struct {
	execOptions
	detach, noDeps bool
	build          cmdutil.BuildOptions
}

func (o *runOptions) Complete(c *cli.Context) error {
	if err := o.execOptions.Complete(c); err != nil {
		return err
	}
	o.detach, o.noDeps = c.Bool("detach"), c.Bool("no-deps")
	o.build = cmdutil.BuildOptions{Builder: c.String("builder"), Force: c.Bool("build")}
	o.flags = append(o.flags, passedOn{"rm": "rm", "detach": "detach"}.complete(c)...)
	return nil
}

func (o *runOptions) Validate() error {
	if len(o.words) == 0 {
		return cmdutil.UsageErrorf(o.command, "%s requires a service", o.command)
	}
	return nil
}

func (o *runOptions) Run(ctx context.Context) error { return exitcode.InContainer(o.run(ctx)) }

func (o *runOptions) run(ctx context.Context) error {
	service := o.words[0]
	all, err := o.convert([]string{service}, o.noDeps)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all.Services, func(s api.Service) bool { return s.Name == service })
	if len(all.Services[i].Pods) == 0 {
		return report.New(report.Usage, "", "service %s has a scale of 0", service)
	}
	pod := all.Services[i].Pods[0]
	if slices.ContainsFunc(all.Services, func(s api.Service) bool { return s.Name != service && slices.Contains(s.Pods, pod) }) {
		return report.New(report.Usage, "podrun compose exec "+service+" runs a command in its container", "service %s shares its network with others: they are one pod", service)
	}
	var others []string
	for _, s := range all.Services {
		if s.Name != service {
			others = append(others, s.Name)
		}
	}
	if len(others) > 0 {
		needed, err := o.convert(others, false)
		if err != nil {
			return err
		}
		needed.Warnings = nil // the warnings of all have them
		if err := o.messages().again(cmdutil.Compose{Converted: &needed, Recreate: cmdutil.RecreateNever, Build: o.build}, "up", "--detach"); err != nil {
			return err
		}
	}
	builds := slices.DeleteFunc(slices.Clone(all.Builds), func(b api.Build) bool { return b.Service != service })
	if err := imagebuild.BuildChanged(ctx, o.env, builds, o.build); err != nil {
		return err
	}
	name := pod + "-run-" + cmdutil.RandomSuffix()
	line := append(slices.Concat(o.flags, o.streams()), "--name="+name)
	if !o.detach {
		line = append(line, "--interactive")
	}
	return o.again(cmdutil.Compose{Converted: &all, Pod: pod}, "run", append(append(line, service), o.words[1:]...)...)
}
