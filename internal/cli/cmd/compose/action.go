package compose

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

func stopCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "stop the services, and keep their pods", ArgsUsage: "[SERVICE...]",
		Description: `Stops the running pods. podrun compose start runs them again.

Examples:
  podrun compose stop web
`,
		Flags:  flagsWith(timeoutFlag()),
		Action: cmdutil.Action(func() cmdutil.Command { return &actionOptions{options: options{env: env}, verb: "stop", alive: true} }),
	}
}

func startCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "run stopped services again", ArgsUsage: "[SERVICE...]",
		Description: `Runs pods that were stopped, or that have ended, again. A running pod is not
changed.

Examples:
  podrun compose start web
`,
		Flags:  flagsWith(),
		Action: cmdutil.Action(func() cmdutil.Command { return &actionOptions{options: options{env: env}, verb: "start", ended: true} }),
	}
}

func restartCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "restart the services", ArgsUsage: "[SERVICE...]",
		Description: `Stops the containers and starts them again in their pods; a pod that has ended
is started. Changes of the files have no effect: podrun compose up applies them.

Examples:
  podrun compose restart -t 1 web
`,
		Flags: flagsWith(timeoutFlag()),
		Action: cmdutil.Action(func() cmdutil.Command {
			return &actionOptions{options: options{env: env}, verb: "restart", alive: true, ended: true}
		}),
	}
}

// actionOptions are the options of a command that does one thing to pods.
type actionOptions struct {
	options
	verb         string
	alive, ended bool     // the pods that it applies to
	flags        []string // for podrun's command
}

func (o *actionOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.flags = passedOn{"timeout": "grace-period"}.complete(c)
	return nil
}

func (o *actionOptions) Run(context.Context) error {
	p, pods, err := o.selected(o.words, false)
	if err != nil {
		return err
	}
	none := len(pods) == 0
	pods = slices.DeleteFunc(pods, func(m member) bool { return !(m.Alive() && o.alive || !m.Alive() && o.ended) })
	switch {
	case none && o.ended:
		return report.New(report.Failure, "podrun compose up -d creates them", "project %s has no such pods in namespace %s", p.name, p.namespace)
	case none:
		o.reportEmpty(p)
		return nil
	case len(pods) == 0:
		return nil // all are in that state already
	case o.verb == "restart" && refuseParts(pods) != nil:
		return o.restartParts(pods)
	}
	if err := refuseParts(pods); err != nil && o.verb == "stop" {
		return err
	}
	return o.again(cmdutil.Compose{}, o.verb, append(o.flags, names(pods)...)...)
}

// restartParts restarts containers of pods that several services share.
func (o *actionOptions) restartParts(list []member) error {
	var errs []error
	for _, name := range names(list) {
		var flags []string
		for _, m := range list {
			if m.Name == name {
				flags = append(flags, "--container="+m.container)
			}
		}
		errs = append(errs, o.again(cmdutil.Compose{}, "restart", append(append(flags, o.flags...), name)...))
	}
	return errors.Join(errs...)
}

func logsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "show the output of the services", ArgsUsage: "[SERVICE...]",
		Description: `Shows the output of the pods. With -f it continues until they have ended.

Examples:
  podrun compose logs -f --tail 20
  podrun compose logs --no-log-prefix web
`,
		Flags: append(projectFlags(), // -f is --follow
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep showing new output"},
			&cli.StringFlag{Name: "tail", Usage: "show only the last `LINES` of each so far, or all"},
			&cli.StringFlag{Name: "since", Usage: "show only what was written since this `TIME`: 10m, or 2026-01-02T15:04:05Z"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Usage: "put the time before every line"},
			&cli.BoolFlag{Name: "no-log-prefix", Usage: "do not put the name of the service before every line"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &logsOptions{options: options{env: env}} }),
	}
}

type logsOptions struct {
	options
	tail, since string
	flags       []string // for podrun logs
}

func (o *logsOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.tail, o.since = c.String("tail"), c.String("since")
	o.flags = append(passedOn{"follow": "follow", "timestamps": "timestamps"}.complete(c), "--ignore-errors")
	if !c.Bool("no-log-prefix") {
		o.flags = append(o.flags, "--prefix")
	}
	return nil
}

func (o *logsOptions) Validate() error {
	switch _, err := strconv.ParseUint(o.tail, 10, 31); {
	case o.tail == "" || o.tail == "all":
	case err != nil:
		return cmdutil.UsageErrorf(o.command, "--tail must be a number of lines, or all, not %q", o.tail)
	default:
		o.flags = append(o.flags, "--tail="+o.tail)
	}
	if o.since != "" {
		flag := "--since-time="
		if _, err := time.ParseDuration(o.since); err == nil {
			flag = "--since="
		}
		o.flags = append(o.flags, flag+o.since)
	}
	return nil
}

func (o *logsOptions) Run(context.Context) error {
	p, pods, err := o.selected(o.words, false)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		o.reportEmpty(p)
		return nil
	}
	which := "--all-containers"
	if len(o.words) == 1 && len(pods) == 1 { // its pod may have containers of other services
		which = "--container=" + pods[0].container
	}
	return o.again(cmdutil.Compose{Labels: labels(pods)}, "logs", append(append(o.flags, which), names(pods)...)...)
}

func pullCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "pull", Usage: "fetch the images of the services", ArgsUsage: "[SERVICE...]",
		Description: `Fetches the images from their registries, except images that are built. podrun
compose up replaces the pods that run another one.

Examples:
  podrun compose pull && podrun compose up -d
`,
		Flags:  flagsWith(),
		Action: cmdutil.Action(func() cmdutil.Command { return &pullOptions{options{env: env}} }),
	}
}

type pullOptions struct{ options }

func (o *pullOptions) Run(context.Context) error {
	r, err := o.convert(o.words, true)
	if err != nil {
		return err
	}
	return o.pullImages(r)
}

// pullImages fetches the images of services, except images that are built.
func (o *options) pullImages(r api.Result) error {
	list := images(r, false)
	if len(list) == 0 {
		return nil
	}
	env := *o.env
	env.NamespaceFlag = "" // images are in no namespace
	plain := options{env: &env}
	return plain.again(cmdutil.Compose{}, "pull", list...)
}
