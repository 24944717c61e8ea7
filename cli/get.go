package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

func getFlags() []cli.Flag {
	return []cli.Flag{
		namespaceFlag(),
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

func (f *front) getCommand() *cli.Command {
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
					return usageErrorf("get", "get takes either words or -f, not both")
				}
				what, err := f.askedIn(files)
				if err != nil || len(what) == 0 {
					return err
				}
				return f.get(c, what)
			}
			if len(words) == 0 {
				return usageErrorf("get", "get takes a kind, such as pods, services or deployments, or the names of pods")
			}
			what, err := f.asked(c, words)
			if err != nil {
				return err
			}
			return f.get(c, what)
		},
	}
}

func (f *front) psCommand() *cli.Command {
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
				return usageErrorf("ps", "-q prints names: it does not go with -o")
			}
			return f.get(c, []asked{{names: c.Args().Slice()}})
		},
	}
}

// known is one pod with what is known of it now.
type known struct {
	manifest *corev1.Pod
	status   *pod.Status
}

// wishesOf reads the options of get and ps.
func wishesOf(c *cli.Context, what []asked) (*getWishes, error) {
	named := slices.ContainsFunc(what, func(a asked) bool { return len(a.names) > 0 })
	w := &getWishes{
		namespace: c.String("namespace"), all: c.Bool("all-namespaces"), format: c.String("output"),
		noHeaders: c.Bool("no-headers"), showLabels: c.Bool("show-labels"), showSecrets: c.Bool("show-secrets"),
	}
	bad := func(format string, args ...any) (*getWishes, error) {
		return nil, usageErrorf(c.Command.Name, format, args...)
	}
	if w.all && named {
		return bad("a pod cannot be named across all namespaces")
	}
	if c.Bool("quiet") {
		w.format, w.bare = "name", true
	}
	var ok bool
	var err error
	if w.program, ok, err = printers.ParsePrinter(w.format, w.noHeaders); err != nil {
		return bad("output format %s", err)
	}
	if !ok && !slices.Contains([]string{"", "wide", "name"}, w.format) {
		return bad("unknown output format %q: it is wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=NAME:PATH", w.format)
	}
	if named && (c.IsSet("selector") || c.IsSet("field-selector")) {
		return bad("a selector and names do not go together")
	}
	if w.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return bad("selector %q: %s", c.String("selector"), err)
	}
	if c.IsSet("field-selector") {
		if w.fields, err = printers.ParseFieldSelector(c.String("field-selector")); err != nil {
			return bad("field selector %q: %s", c.String("field-selector"), err)
		}
	}
	if c.IsSet("sort-by") {
		if w.sortBy, err = printers.ParseSorter(c.String("sort-by")); err != nil {
			return bad("sort by %s", err)
		}
	}
	return w, nil
}

// get shows what is asked for, and with -w what becomes of it.
func (f *front) get(c *cli.Context, what []asked) error {
	w, err := wishesOf(c, what)
	if err != nil {
		return err
	}
	watch := c.Bool("watch") || c.Bool("watch-only")
	if watch && (len(what) > 1 || what[0].kind != "") {
		return usageErrorf(c.Command.Name, "only pods can be watched")
	}
	if !watch && c.Bool("output-watch-events") {
		return usageErrorf(c.Command.Name, "--output-watch-events goes with --watch or --watch-only")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	f.revive(dirs)
	if watch && what[0].namespace != "" {
		w.namespace = what[0].namespace
	}
	if watch {
		return f.untilInterrupted(c.Context, func(ctx context.Context) error {
			return (&podWatch{front: f, dirs: dirs, names: what[0].names, wishes: w, silent: c.Bool("watch-only"), events: c.Bool("output-watch-events")}).run(ctx)
		})
	}
	var lists []*listing
	var errs []error
	found, single := 0, len(what) == 1 && len(what[0].names) == 1
	for _, a := range what {
		l, err := f.list(dirs, a, w)
		errs = append(errs, err)
		if l == nil {
			continue
		}
		if err := w.choose(l); err != nil {
			return err
		}
		found += len(l.entries)
		lists = append(lists, l)
	}
	if failed := errors.Join(errs...); found == 0 && failed != nil {
		return failed // it says it all
	}
	return errors.Join(append(errs, f.print(lists, w, single))...)
}

// listed are the pods of a namespace, or of all.
func listed(dirs store.Dirs, namespace string, all bool) ([]store.Pod, error) {
	places, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(places, func(p store.Pod) bool {
		return !p.Exists() || !all && p.Namespace != namespace
	}), nil
}

// know reads a pod to show it.
func know(p store.Pod) (known, error) {
	text, err := p.Manifest()
	if err != nil {
		return known{}, err
	}
	k := known{}
	if k.manifest, err = manifest.Unmarshal(text); err != nil {
		return known{}, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	placeOnNode(k.manifest)
	k.status, err = reading.StatusOf(p)
	return k, err
}

// openGates counts a pod's readiness gates that are open, as kubectl does.
func openGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return ""
	}
	open := 0
	for _, g := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == g.ConditionType && c.Status == corev1.ConditionTrue {
				open++
			}
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}
