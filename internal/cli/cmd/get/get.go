// Package get has the commands get and ps.
package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	internalprinters "github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/store"
)

func getFlags() []cli.Flag {
	return []cli.Flag{
		cmdutil.NamespaceFlag(),
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "list all namespaces"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE, go-template=TEMPLATE, go-template-file=FILE or custom-columns=NAME:PATH,..."},
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "keep showing pods that change"},
		&cli.BoolFlag{Name: "watch-only", Usage: "show only changes from now on"},
		&cli.BoolFlag{Name: "output-watch-events", Usage: "with --watch or --watch-only: show what each change is: ADDED, MODIFIED or DELETED"},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "show only what has the labels of this `SELECTOR`: app=web,tier!=db"},
		&cli.StringFlag{Name: "field-selector", Usage: "show only what has fields of this `SELECTOR`: status.phase=Running"},
		&cli.StringFlag{Name: "sort-by", Usage: "sort by the field at this `PATH`, such as .metadata.creationTimestamp"},
		&cli.BoolFlag{Name: "no-headers", Usage: "omit the table headers"},
		&cli.BoolFlag{Name: "show-labels", Usage: "show the labels in a column of their own"},
	}
}

// NewCommand returns the command get.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show pods with their status, and stored objects",
		ArgsUsage: "POD... | KIND,... [NAME...] | KIND/NAME... | -f FILE",
		Description: `Shows pods in kubectl's columns, or as Kubernetes objects with their PodStatus.
KIND is pod (po), configmap (cm), secret, persistentvolumeclaim (pvc),
persistentvolume (pv), service (svc), endpoints (ep), endpointslice,
networkpolicy (netpol), serviceaccount (sa), namespace (ns), deployment
(deploy), replicaset (rs), replicationcontroller (rc), statefulset (sts),
daemonset (ds), job or cronjob (cj); "all" means pods, Services and workloads.
The values of a Secret are printed with -o only, in base64; describe shows their
sizes. Every Service has Endpoints. Namespaces are the created ones, the ones
in use and the default one.

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
  podrun get secret login -o go-template='{{.data.user | base64decode}}'
  podrun get pods -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName
`,
		Flags: append(getFlags(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "show the objects of this `FILE` as they are on this machine (- is standard input)"},
			&cli.StringFlag{Name: "template", Usage: "the `TEMPLATE` of -o go-template, or the file of -o go-template-file"},
			&cli.BoolFlag{Name: "show-secrets", Hidden: true, Usage: "accepted for compatibility: -o prints the values of secrets"}),
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
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
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of get and ps.
type options struct {
	internalprinters.PrintOptions
	env     *cmdutil.Env
	dirs    store.Dirs
	command string // get or ps
	queries []kindnames.Query

	quiet       bool // ps -q
	hasOutput   bool
	hasSelector bool // of labels or fields
	watch       bool
	watchOnly   bool
	watchEvents bool
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.command, o.Namespace, o.All = c.Command.Name, c.String("namespace"), c.Bool("all-namespaces")
	o.Format, o.hasOutput, o.quiet = c.String("output"), c.IsSet("output"), c.Bool("quiet")
	o.NoHeaders, o.ShowLabels = c.Bool("no-headers"), c.Bool("show-labels")
	o.watchOnly, o.watchEvents = c.Bool("watch-only"), c.Bool("output-watch-events")
	o.watch = c.Bool("watch") || o.watchOnly
	o.hasSelector = c.IsSet("selector") || c.IsSet("field-selector")
	if err := o.completeQueries(c.Args().Slice(), c.StringSlice("filename")); err != nil {
		return err
	}
	if o.quiet {
		o.Format, o.Bare = "name", true
	}
	if err := o.completeTemplate(c.String("template")); err != nil {
		return err
	}
	var ok bool
	if o.Printer, ok, err = printers.ParsePrinter(o.Format, o.NoHeaders); err != nil {
		return o.usageError("output format %s", err)
	} else if !ok && !slices.Contains([]string{"", "wide", "name"}, o.Format) {
		return o.usageError("unknown output format %q: use wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=NAME:PATH", o.Format)
	}
	if o.Labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return o.usageError("selector %q: %s", c.String("selector"), err)
	}
	if c.IsSet("field-selector") {
		if o.Fields, err = printers.ParseFieldSelector(c.String("field-selector")); err != nil {
			return o.usageError("field selector %q: %s", c.String("field-selector"), err)
		}
	}
	if c.IsSet("sort-by") {
		if o.SortBy, err = printers.ParseSorter(c.String("sort-by")); err != nil {
			return o.usageError("sort by %s", err)
		}
	}
	return nil
}

// completeTemplate takes the template of --template, and of the file of go-template-file, into the format.
func (o *options) completeTemplate(template string) error {
	name, given, _ := strings.Cut(o.Format, "=")
	switch {
	case template != "" && name != "go-template" && name != "go-template-file":
		return o.usageError("--template requires -o go-template or -o go-template-file")
	case name == "go-template" && given == "":
		o.Format = "go-template=" + template
	case name == "go-template-file":
		file := cmp.Or(given, template)
		if file == "" {
			return o.usageError("go-template-file requires a file: -o go-template-file=FILE")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return o.usageError("cannot read the template: %s", err)
		}
		o.Format = "go-template=" + string(text)
	}
	return nil
}

func (o *options) completeQueries(words, files []string) (err error) {
	switch {
	case o.command == "ps":
		o.queries = []kindnames.Query{{Names: words}}
	case len(files) > 0 && len(words) > 0:
		return o.usageError("get requires either names or -f, not both")
	case len(files) > 0:
		o.queries, err = resource.QueriesInFiles(o.env, files)
	case len(words) == 0:
		return o.usageError("get requires a kind, such as pods, services or deployments, or the names of pods")
	default:
		o.queries, err = resource.ParseQueries(o.env, o.Namespace, words)
	}
	return err
}

func (o *options) usageError(format string, args ...any) error {
	return cmdutil.UsageErrorf(o.command, format, args...)
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	named := slices.ContainsFunc(o.queries, func(q kindnames.Query) bool { return len(q.Names) > 0 })
	switch {
	case o.quiet && o.hasOutput:
		return o.usageError("-q and -o are mutually exclusive")
	case o.All && named:
		return o.usageError("a resource cannot be retrieved by name across all namespaces")
	case o.hasSelector && named:
		return o.usageError("name cannot be provided when a selector is specified")
	case o.watch && (len(o.queries) > 1 || len(o.queries) == 1 && o.queries[0].Kind != ""):
		return o.usageError("only pods can be watched")
	case !o.watch && o.watchEvents:
		return o.usageError("--output-watch-events option can only be used with --watch or --watch-only")
	}
	return nil
}

// Run prints the requested objects, and with -w their changes.
func (o *options) Run(ctx context.Context) (err error) {
	if len(o.queries) == 0 { // the files have no objects that podrun keeps
		return nil
	}
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	controller.FinishInterrupted(o.env, o.dirs)
	if err := o.dirs.CheckWritable(); err != nil && slices.ContainsFunc(o.queries, func(q kindnames.Query) bool { return q.Kind == "" }) {
		fmt.Fprintf(o.env.ErrOut, "podrun: warning: %v: pods keep running, none can be started, and their logs are lost; podrun doctor shows more\n", err)
	}
	if o.watch {
		q := o.queries[0]
		o.Namespace = cmp.Or(q.Namespace, o.Namespace)
		return o.env.UntilInterrupted(ctx, (&podWatch{options: o, names: q.Names, shown: map[string]watchedPod{}}).run)
	}
	var lists []*internalprinters.Listing
	var errs []error
	found, single := 0, len(o.queries) == 1 && len(o.queries[0].Names) == 1
	for _, q := range o.queries {
		l, err := internalprinters.List(o.env, o.dirs, q, &o.PrintOptions)
		errs = append(errs, err)
		if l == nil {
			continue
		}
		if err := o.Filter(l); err != nil {
			return err
		}
		found += len(l.Entries)
		lists = append(lists, l)
	}
	if failed := errors.Join(errs...); found == 0 && failed != nil {
		return failed // the error covers it
	}
	return errors.Join(append(errs, internalprinters.PrintListings(o.env, lists, &o.PrintOptions, single))...)
}
