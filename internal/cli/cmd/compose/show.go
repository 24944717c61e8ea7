package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
)

func psCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list the pods of the project", ArgsUsage: "[SERVICE...]",
		Description: `Lists the running pods. podrun describe NAME shows all of one.

Examples:
  podrun compose ps -a
  podrun compose ps --format json web
`,
		Flags: flagsWith(
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list pods that have ended, and pods of compose run, too"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but the names of the pods"},
			&cli.BoolFlag{Name: "services", Usage: "print the names of the services"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "print in this `FORMAT`: table, or json, an object on each line with docker's names"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &psOptions{options: options{env: env}} }),
	}
}

type psOptions struct {
	options
	all, quiet, services bool
	format               string
}

func (o *psOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.all, o.quiet, o.services, o.format = c.Bool("all"), c.Bool("quiet"), c.Bool("services"), c.String("format")
	return nil
}

func (o *psOptions) Validate() error { return checkFormat(o.command, o.format) }

func checkFormat(command, format string) error {
	if format != "table" && format != "json" {
		return cmdutil.UsageErrorf(command, "--format must be table or json, not %q", format)
	}
	return nil
}

// psRow is a pod in the form of docker compose ps --format json.
type psRow struct {
	ID, Name, Image, Project, Service, State, Health string
	ExitCode                                         int
	CreatedAt                                        string
	Publishers                                       []publisher
	row                                              podrow.Row
}

// publisher is a port of a psRow.
type publisher struct {
	URL                       string
	TargetPort, PublishedPort int
	Protocol                  string
}

func (o *psOptions) Run(context.Context) error {
	p, pods, err := o.selected(o.words, false)
	if err != nil {
		return err
	}
	if o.all && len(o.words) == 0 {
		pods = p.members
	}
	var rows []psRow
	for _, m := range pods {
		row, err := rowOf(p, m)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is being removed
		case err != nil:
			return err
		case o.all || row.State != "exited":
			rows = append(rows, row)
		}
	}
	return o.print(rows)
}

func (o *psOptions) print(rows []psRow) error {
	var lines []string
	switch {
	case o.services:
		for _, r := range rows {
			if r.Service != "" {
				lines = append(lines, r.Service)
			}
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
	case o.quiet:
		for _, r := range rows {
			lines = append(lines, r.Name)
		}
		lines = slices.Compact(lines) // services may share a pod
	case o.format == "json":
		for _, r := range rows {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			lines = append(lines, string(text))
		}
	default:
		table := [][]string{{"NAME", "SERVICE", "IMAGE", "READY", "STATUS", "RESTARTS", "AGE", "PORTS"}}
		for _, r := range rows {
			table = append(table, []string{r.Name, r.Service, r.Image, r.row.Ready, r.row.Status, r.row.Restarts, r.row.Age, ports(r.Publishers)})
		}
		return o.env.PrintTable(table)
	}
	return printLines(o.env, lines)
}

// printLines prints lines.
func printLines(env *cmdutil.Env, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return env.WriteSafe([]byte(strings.Join(lines, "\n") + "\n"))
}

// ports returns published ports as docker prints them.
func ports(list []publisher) string {
	var words []string
	for _, p := range list {
		if p.PublishedPort != 0 {
			words = append(words, fmt.Sprintf("%s:%d->%d/%s", p.URL, p.PublishedPort, p.TargetPort, p.Protocol))
		}
	}
	return strings.Join(words, ", ")
}

// rowOf returns the row of a pod.
func rowOf(p *project, m member) (psRow, error) {
	plan, err := m.Plan()
	if err != nil {
		return psRow{}, err
	}
	st, err := podview.StatusOf(m.Pod)
	if err != nil {
		return psRow{}, err
	}
	created := podview.MetadataOf(m.Pod).CreationTimestamp
	i := slices.IndexFunc(plan.Containers, func(c pod.Container) bool { return c.Name == m.container })
	c := &plan.Containers[max(i, 0)]
	row := psRow{
		ID: plan.UID, Name: m.Name, Image: c.Image, Project: p.name, Service: m.service, State: state(st), CreatedAt: created.Format(time.RFC3339),
		Publishers: []publisher{}, row: podrow.New(m.Name, created, plan, st, time.Now()),
	}
	for _, port := range plan.Ports {
		row.Publishers = append(row.Publishers, publisher{URL: port.HostIP, TargetPort: port.Number, PublishedPort: port.HostPort, Protocol: strings.ToLower(port.Protocol)})
	}
	if s, ok := st.Container(c.Name); ok {
		if t := s.State.Terminated; t != nil {
			row.ExitCode = t.ExitCode
		}
		switch {
		case c.Readiness == nil || s.State.Running == nil:
		case s.Ready:
			row.Health = "healthy"
		case s.Unhealthy:
			row.Health = "unhealthy"
		default:
			row.Health = "starting"
		}
	}
	return row, nil
}

// state returns docker's word for the state of a pod.
func state(st *pod.Status) string {
	switch {
	case st.Phase.Terminal():
		return "exited"
	case st.Phase == pod.Pending:
		return "created"
	case slices.ContainsFunc(st.Containers, func(c pod.ContainerStatus) bool { return c.State.Running == nil }):
		return "restarting"
	}
	return "running"
}

func lsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the projects",
		Description: `Lists the projects that have running pods, in all namespaces.

Examples:
  podrun compose ls -a
`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "list projects that are stopped, too"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but names"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "print in this `FORMAT`: table or json"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &lsOptions{options: options{env: env}} }),
	}
}

type lsOptions struct {
	options
	all, quiet bool
	format     string
}

func (o *lsOptions) Complete(c *cli.Context) error {
	o.command, o.words = "compose ls", c.Args().Slice()
	o.all, o.quiet, o.format = c.Bool("all"), c.Bool("quiet"), c.String("format")
	return nil
}

func (o *lsOptions) Validate() error {
	if len(o.words) > 0 {
		return cmdutil.UsageErrorf(o.command, "%s takes no arguments", o.command)
	}
	return checkFormat(o.command, o.format)
}

// lsRow is a project.
type lsRow struct{ Name, Namespace, Status string }

func (o *lsOptions) Run(context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	all, err := members(dirs, "", true)
	if err != nil {
		return err
	}
	rows := []lsRow{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		counts := map[string]map[string]int{} // pods by namespace and state
		for _, m := range all[name] {
			st, err := podview.StatusOf(m.Pod)
			if err != nil {
				continue // it is being removed
			}
			if counts[m.Namespace] == nil {
				counts[m.Namespace] = map[string]int{}
			}
			counts[m.Namespace][state(st)]++
		}
		for _, namespace := range slices.Sorted(maps.Keys(counts)) {
			var words []string
			for _, s := range slices.Sorted(maps.Keys(counts[namespace])) {
				words = append(words, fmt.Sprintf("%s(%d)", s, counts[namespace][s]))
			}
			if running := len(counts[namespace]) > 1 || counts[namespace]["exited"] == 0; o.all || running {
				rows = append(rows, lsRow{name, namespace, strings.Join(words, ", ")})
			}
		}
	}
	return o.print(rows)
}

func (o *lsOptions) print(rows []lsRow) error {
	switch {
	case o.quiet:
		var lines []string
		for _, r := range rows {
			lines = append(lines, r.Name)
		}
		return printLines(o.env, lines)
	case o.format == "json":
		text, err := json.Marshal(rows)
		return errors.Join(err, printLines(o.env, []string{string(text)}))
	}
	table := [][]string{{"NAME", "NAMESPACE", "STATUS"}}
	for _, r := range rows {
		table = append(table, []string{r.Name, r.Namespace, r.Status})
	}
	return o.env.PrintTable(table)
}

func configCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "check the files, and print them as one", ArgsUsage: "[SERVICE...]",
		Description: `Prints the merged files with all variables replaced. It fails if podrun cannot
run them. podrun convert prints the Kubernetes objects that they become.

Examples:
  podrun compose config
  podrun compose config --services
`,
		Flags: flagsWith(
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "check only, print nothing"},
			&cli.BoolFlag{Name: "services", Usage: "print the names of the services"},
			&cli.BoolFlag{Name: "images", Usage: "print the names of the images"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &configOptions{options: options{env: env}} }),
	}
}

type configOptions struct {
	options
	quiet, services, images bool
}

func (o *configOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.quiet, o.services, o.images = c.Bool("quiet"), c.Bool("services"), c.Bool("images")
	o.request.Model = true
	return nil
}

func (o *configOptions) Run(context.Context) error {
	r, err := o.convert(o.words, false)
	compose.Warn(o.env, r.Warnings)
	if err != nil {
		return err
	}
	switch {
	case o.quiet:
		return nil
	case o.services:
		var lines []string
		for _, s := range r.Services {
			lines = append(lines, s.Name)
		}
		return printLines(o.env, lines)
	case o.images:
		return printLines(o.env, images(r, true))
	}
	return o.env.WriteSafe([]byte(r.Model))
}

// images returns the names of the images of services, sorted, each once.
func images(r api.Result, built bool) (list []string) {
	for _, s := range r.Services {
		if built || !slices.ContainsFunc(r.Builds, func(b api.Build) bool { return b.Service == s.Name }) {
			list = append(list, s.Image)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
