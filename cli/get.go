package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

func getFlags() []cli.Flag {
	return []cli.Flag{
		namespaceFlag(),
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "list the pods of all namespaces"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json, yaml or name"},
	}
}

func (f *front) getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show pods with their status, and the objects that are kept for them",
		ArgsUsage: "pods | POD... | KIND [NAME...]",
		Description: `Shows pods in kubectl's columns, or as Kubernetes objects with their PodStatus.
KIND is configmap (cm), secret, persistentvolumeclaim (pvc), service (svc),
namespace (ns), deployment (deploy), replicaset (rs), statefulset (sts),
daemonset (ds), job or cronjob (cj). The values of a secret are shown only with
--show-secrets: else their sizes stand in their place.

Examples:
  podrun get pods -A -o wide
  podrun get web -o yaml
  podrun get pod web -o json
  podrun get secrets
  podrun get cm settings -o yaml
  podrun get deployments
  podrun get job/hello -o yaml
`,
		Flags: append(getFlags(), &cli.BoolFlag{Name: "show-secrets", Usage: "with -o json or yaml: show the values of secrets"}),
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				return usageErrorf("get", "get takes `pods`, or the names of pods")
			}
			if err := noKind(words); err != nil {
				return err
			}
			if slices.Contains([]string{"pods", "pod", "po"}, words[0]) {
				words = words[1:]
			}
			kind, names, kept := objectWords(words)
			if !kept {
				names = words
			}
			if err := checkGet(c, names); err != nil {
				return err
			}
			if kept {
				return f.getObjects(c, kind, names)
			}
			return f.get(c, words)
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
`,
		Flags: getFlags(),
		Action: func(c *cli.Context) error {
			if err := checkGet(c, c.Args().Slice()); err != nil {
				return err
			}
			return f.get(c, c.Args().Slice())
		},
	}
}

// known is one pod with what is known of it now.
type known struct {
	manifest *corev1.Pod
	status   *pod.Status
}

// checkGet looks at the options, given the names of pods or objects.
func checkGet(c *cli.Context, names []string) error {
	format := c.String("output")
	switch {
	case !slices.Contains([]string{"", "wide", "json", "yaml", "name"}, format):
		return usageErrorf(c.Command.Name, "unknown output format %q: it is wide, json, yaml or name", format)
	case c.Bool("all-namespaces") && len(names) > 0:
		return usageErrorf(c.Command.Name, "a pod cannot be named across all namespaces")
	}
	return nil
}

func (f *front) get(c *cli.Context, words []string) error {
	all := c.Bool("all-namespaces")
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	f.revive(dirs)
	var places []store.Pod
	var errs []error
	if len(words) > 0 {
		for _, word := range words {
			p, err := existing(dirs, c.String("namespace"), word)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			places = append(places, p)
		}
	} else if places, err = listed(dirs, c.String("namespace"), all); err != nil {
		return err
	}
	var pods []known
	for _, p := range places {
		k, err := know(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pods = append(pods, k)
	}
	if len(pods) == 0 && len(errs) > 0 {
		return errors.Join(errs...) // they say it all
	}
	return errors.Join(append(errs, f.printPods(pods, c, len(words) == 1))...)
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

func know(p store.Pod) (known, error) {
	text, err := p.Manifest()
	if err != nil {
		return known{}, err
	}
	k := known{}
	if k.manifest, err = manifest.Unmarshal(text); err != nil {
		return known{}, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	k.status, err = statusOf(p)
	return k, err
}

func (f *front) printPods(pods []known, c *cli.Context, single bool) error {
	switch format := c.String("output"); format {
	case "json", "yaml":
		return f.printObjects(pods, manifest.Format(format), single)
	case "name":
		for _, k := range pods {
			fmt.Fprintf(f.out, "pod/%s\n", k.manifest.Name)
		}
		return nil
	default:
		return f.printTable(pods, c, format == "wide")
	}
}

func (f *front) printTable(pods []known, c *cli.Context, wide bool) error {
	if len(pods) == 0 {
		if c.Bool("all-namespaces") {
			fmt.Fprintln(f.err, "No resources found")
		} else {
			fmt.Fprintf(f.err, "No resources found in %s namespace.\n", c.String("namespace"))
		}
		return nil
	}
	now := time.Now()
	head := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if wide {
		head = append(head, "IP", "NODE", "NOMINATED NODE", "READINESS GATES")
	}
	rows := [][]string{head}
	for _, k := range pods {
		r := manifest.Row(k.manifest, k.status, now)
		row := []string{r.Name, r.Ready, r.Status, r.Restarts, r.Age}
		if wide {
			rendered := manifest.Render(k.manifest, k.status)
			row = append(row, rendered.Status.PodIP, rendered.Spec.NodeName, "", openGates(rendered))
		}
		rows = append(rows, row)
	}
	if c.Bool("all-namespaces") {
		for i := range rows {
			namespace := "NAMESPACE"
			if i > 0 {
				namespace = pods[i-1].manifest.Namespace
			}
			rows[i] = append([]string{namespace}, rows[i]...)
		}
	}
	return f.table(rows)
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

func (f *front) printObjects(pods []known, format manifest.Format, single bool) error {
	items := make([]*corev1.Pod, 0, len(pods))
	for _, k := range pods {
		items = append(items, manifest.Render(k.manifest, k.status))
	}
	var text []byte
	var err error
	if single {
		text, err = manifest.Print(items[0], format)
	} else {
		text, err = manifest.PrintList(items, format)
	}
	if err != nil {
		return err
	}
	_, err = f.out.Write(text)
	return err
}
