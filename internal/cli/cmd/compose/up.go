package compose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func upCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "build what has changed, and run the services",
		ArgsUsage: "[SERVICE...]",
		Description: `Runs the services, or the named ones and what they depend on. Images of services
with build are built if they are missing or their inputs have changed. A running
pod stays if nothing has changed; otherwise it is changed in place or replaced.
In the foreground compose up shows the output of all services, and Ctrl-C stops
and removes them.

Examples:
  podrun compose up
  podrun compose up -d --wait
  podrun compose up -d --build web
`,
		Flags: flagsWith(
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the services run, and leave them running"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "in the foreground: do what develop.watch says when files change"},
			&cli.BoolFlag{Name: "wait", Usage: "as -d, but return when the services are ready"},
			&cli.DurationFlag{Name: "wait-timeout", Usage: "with -d or --wait: give up waiting after this `DURATION`; the pods keep running"},
			&cli.BoolFlag{Name: "no-recreate", Usage: "leave running pods as they are"},
			&cli.BoolFlag{Name: "force-recreate", Usage: "replace running pods even if nothing has changed"},
			&cli.BoolFlag{Name: "build", Usage: "build the images even if nothing has changed"},
			&cli.BoolFlag{Name: "no-build", Usage: "build no images"},
			cmdutil.BuilderFlag(),
			&cli.StringFlag{Name: "pull", Usage: "override pull_policy once: `POLICY` is always, missing or never"},
			&cli.BoolFlag{Name: "remove-orphans", Usage: "remove the pods of services that are not in the files"},
			&cli.BoolFlag{Name: "no-deps", Usage: "without what the named services depend on"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &upOptions{options: options{env: env}} }),
	}
}

type upOptions struct {
	options
	noRecreate, forceRecreate, removeOrphans, noDeps bool
	build                                            cmdutil.BuildOptions
	pull                                             string
	words                                            []string // for podrun up
}

func (o *upOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.noRecreate, o.forceRecreate = c.Bool("no-recreate"), c.Bool("force-recreate")
	o.removeOrphans, o.noDeps = c.Bool("remove-orphans"), c.Bool("no-deps")
	o.build = cmdutil.BuildOptions{Builder: c.String("builder"), Force: c.Bool("build"), Never: c.Bool("no-build")}
	o.pull = c.String("pull")
	o.words = passedOn{"detach": "detach", "watch": "watch", "wait": "wait", "wait-timeout": "timeout"}.complete(c)
	if c.Bool("wait") && !c.Bool("detach") {
		o.words = append(o.words, "--detach")
	}
	return nil
}

func (o *upOptions) Validate() error {
	switch {
	case o.noRecreate && o.forceRecreate:
		return cmdutil.UsageErrorf(o.command, "--no-recreate and --force-recreate are mutually exclusive")
	case o.build.Force && o.build.Never:
		return cmdutil.UsageErrorf(o.command, "--build and --no-build are mutually exclusive")
	case o.pull == "missing" || o.pull == "never":
		o.words = append(o.words, "--pull="+o.pull)
	case o.pull != "" && o.pull != "always":
		return cmdutil.UsageErrorf(o.command, "--pull must be always, missing or never, not %q", o.pull)
	}
	return nil
}

func (o *upOptions) Run(context.Context) error {
	r, err := o.convert(o.options.words, o.noDeps)
	if err != nil {
		return err
	}
	if o.pull == "always" { // before the running pods are compared with the images
		if err := o.messages().pullImages(r); err != nil {
			return err
		}
	}
	var started []member
	for _, s := range r.Services {
		for _, name := range s.Pods {
			started = append(started, member{Pod: store.Pod{Name: name}, service: s.Name, container: api.Label(s.Name)})
		}
	}
	with := cmdutil.Compose{Converted: &r, Recreate: cmdutil.RecreateChanged, Build: o.build, Labels: labels(started)}
	if with.Leaving, err = o.stale(r); err != nil {
		return err
	}
	if o.noRecreate {
		with.Recreate = cmdutil.RecreateNever
	} else if o.forceRecreate {
		with.Recreate = cmdutil.RecreateAlways
	}
	return o.again(with, "up", o.words...)
}

// stale returns the pods that services with fewer replicas no longer have. With --remove-orphans it also returns the pods
// of services that are not in the files; otherwise it reports them.
func (o *upOptions) stale(r api.Result) (list []store.Pod, err error) {
	o.request.Project = r.Project
	p, err := o.project(false)
	if err != nil {
		return nil, err
	}
	var orphans []member
	var pods, chosen []string
	for _, s := range r.Services {
		pods, chosen = append(pods, s.Pods...), append(chosen, s.Name)
	}
	for _, m := range p.members {
		switch {
		case m.service == "" || m.service != m.first || slices.Contains(pods, m.Name):
		case !has(r.Known, m.service) && !o.removeOrphans:
			orphans = append(orphans, m)
		case !has(r.Known, m.service), has(chosen, m.service):
			list = append(list, m.Pod)
		}
	}
	o.reportOrphans(p, orphans)
	return list, nil
}

// reportOrphans warns about pods whose services are not in the files.
func (o *options) reportOrphans(p *project, orphans []member) {
	if len(orphans) > 0 {
		fmt.Fprintln(o.env.ErrOut, report.Escape(fmt.Sprintf("podrun: warning: project %s has pods of services that are not in its files: %s; --remove-orphans removes them", p.name, strings.Join(names(orphans), ", "))))
	}
}
