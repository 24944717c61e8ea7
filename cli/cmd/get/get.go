// Package get has the commands get and ps.
package get

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	internalprinters "github.com/podrun/podrun/cli/internal/printers"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/manifest/printers"
)

func getFlags() []cli.Flag {
	return []cli.Flag{
		cmdutil.NamespaceFlag(),
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "list what is in all namespaces"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE or custom-columns=NAME:PATH,..."},
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on showing pods that change"},
		&cli.BoolFlag{Name: "watch-only", Usage: "show only what changes from now on"},
		&cli.BoolFlag{Name: "output-watch-events", Usage: "with --watch or --watch-only: show what each change is: ADDED, MODIFIED or DELETED"},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "show only what has the labels of this `SELECTOR`: app=web,tier!=db"},
		&cli.StringFlag{Name: "field-selector", Usage: "show only what has fields of this `SELECTOR`: status.phase=Running"},
		&cli.StringFlag{Name: "sort-by", Usage: "sort by the field at this `PATH`, such as .metadata.creationTimestamp"},
		&cli.BoolFlag{Name: "no-headers", Usage: "leave the head of tables out"},
		&cli.BoolFlag{Name: "show-labels", Usage: "show the labels in a column of their own"},
	}
}

// NewCommand returns the command get.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show pods with their status, and the objects that are kept for them",
		ArgsUsage: "POD... | KIND,... [NAME...] | KIND/NAME... | -f FILE",
		Description: `Shows pods in kubectl's columns, or as Kubernetes objects with their PodStatus.
KIND is pod (po), configmap (cm), secret, persistentvolumeclaim (pvc), service
(svc), namespace (ns), deployment (deploy), replicaset (rs), statefulset (sts),
daemonset (ds), job or cronjob (cj); all are the pods, the services and what
makes pods. The values of a secret are shown only with --show-secrets: else
their sizes stand in their place. Namespaces are those that were made, those in
use and the default one.

Examples:
  podrun get pods -A -o wide
  podrun get web -o yaml
  podrun get pod web -o json
  podrun get secrets
  podrun get cm settings -o yaml
  podrun get deployments
  podrun get job/hello -o yaml
  podrun get -f web.yaml
  podrun get pods -w
  podrun get pods -l app=web -o jsonpath='{.items[*].status.podIP}'
  podrun get deployments,services --sort-by .metadata.creationTimestamp
  podrun get pods -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName
`,
		Flags: append(getFlags(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "show the objects of this `FILE` as they are on this machine (- is standard input)"},
			&cli.BoolFlag{Name: "show-secrets", Usage: "with -o json or yaml: show the values of secrets"}),
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if files := c.StringSlice("filename"); len(files) > 0 {
				if len(words) > 0 {
					return cmdutil.UsageErrorf("get", "get takes either words or -f, not both")
				}
				what, err := resource.QueriesInFiles(env, files)
				if err != nil || len(what) == 0 {
					return err
				}
				return run(env, c, what)
			}
			if len(words) == 0 {
				return cmdutil.UsageErrorf("get", "get takes a kind, such as pods, services or deployments, or the names of pods")
			}
			what, err := resource.ParseQueries(env, c.String("namespace"), words)
			if err != nil {
				return err
			}
			return run(env, c, what)
		},
	}
}

// NewPsCommand returns the command ps.
func NewPsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "ps",
		Usage:     "list the pods",
		ArgsUsage: "[POD...]",
		Description: `Lists the pods, as get pods does.

Examples:
  podrun ps
  podrun ps -A -o wide
  podrun down $(podrun ps -q)
`,
		Flags: append(getFlags(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but names"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "accepted for compatibility: pods that have ended are always listed"}),
		Action: func(c *cli.Context) error {
			if c.Bool("quiet") && c.IsSet("output") {
				return cmdutil.UsageErrorf("ps", "-q prints names: it does not go with -o")
			}
			return run(env, c, []kindnames.Query{{Names: c.Args().Slice()}})
		},
	}
}

// parseOptions returns the print options of get and ps.
func parseOptions(c *cli.Context, what []kindnames.Query) (*internalprinters.PrintOptions, error) {
	named := slices.ContainsFunc(what, func(a kindnames.Query) bool { return len(a.Names) > 0 })
	w := &internalprinters.PrintOptions{
		Namespace: c.String("namespace"), All: c.Bool("all-namespaces"), Format: c.String("output"),
		NoHeaders: c.Bool("no-headers"), ShowLabels: c.Bool("show-labels"), ShowSecrets: c.Bool("show-secrets"),
	}
	bad := func(format string, args ...any) (*internalprinters.PrintOptions, error) {
		return nil, cmdutil.UsageErrorf(c.Command.Name, format, args...)
	}
	if w.All && named {
		return bad("a pod cannot be named across all namespaces")
	}
	if c.Bool("quiet") {
		w.Format, w.Bare = "name", true
	}
	var ok bool
	var err error
	if w.Printer, ok, err = printers.ParsePrinter(w.Format, w.NoHeaders); err != nil {
		return bad("output format %s", err)
	}
	if !ok && !slices.Contains([]string{"", "wide", "name"}, w.Format) {
		return bad("unknown output format %q: it is wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=NAME:PATH", w.Format)
	}
	if named && (c.IsSet("selector") || c.IsSet("field-selector")) {
		return bad("a selector and names do not go together")
	}
	if w.Labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return bad("selector %q: %s", c.String("selector"), err)
	}
	if c.IsSet("field-selector") {
		if w.Fields, err = printers.ParseFieldSelector(c.String("field-selector")); err != nil {
			return bad("field selector %q: %s", c.String("field-selector"), err)
		}
	}
	if c.IsSet("sort-by") {
		if w.SortBy, err = printers.ParseSorter(c.String("sort-by")); err != nil {
			return bad("sort by %s", err)
		}
	}
	return w, nil
}

// run prints the requested objects, and with -w their changes.
func run(env *cmdutil.Env, c *cli.Context, what []kindnames.Query) error {
	w, err := parseOptions(c, what)
	if err != nil {
		return err
	}
	watch := c.Bool("watch") || c.Bool("watch-only")
	if watch && (len(what) > 1 || what[0].Kind != "") {
		return cmdutil.UsageErrorf(c.Command.Name, "only pods can be watched")
	}
	if !watch && c.Bool("output-watch-events") {
		return cmdutil.UsageErrorf(c.Command.Name, "--output-watch-events goes with --watch or --watch-only")
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	controller.Recover(env, dirs)
	if watch && what[0].Namespace != "" {
		w.Namespace = what[0].Namespace
	}
	if watch {
		return env.UntilInterrupted(c.Context, func(ctx context.Context) error {
			return (&podWatch{env: env, dirs: dirs, names: what[0].Names, options: w, silent: c.Bool("watch-only"), events: c.Bool("output-watch-events")}).run(ctx)
		})
	}
	var lists []*internalprinters.Listing
	var errs []error
	found, single := 0, len(what) == 1 && len(what[0].Names) == 1
	for _, a := range what {
		l, err := internalprinters.List(env, dirs, a, w)
		errs = append(errs, err)
		if l == nil {
			continue
		}
		if err := w.Filter(l); err != nil {
			return err
		}
		found += len(l.Entries)
		lists = append(lists, l)
	}
	if failed := errors.Join(errs...); found == 0 && failed != nil {
		return failed // the error covers it
	}
	return errors.Join(append(errs, internalprinters.PrintListings(env, lists, w, single))...)
}
