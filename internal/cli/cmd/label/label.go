// Package label has the commands label and annotate.
package label

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewLabelCommand returns the command label.
func NewLabelCommand(env *cmdutil.Env) *cli.Command {
	return newCommand(env, &cli.Command{
		Name:  "label",
		Usage: "set or remove labels",
		Description: `Sets labels of pods and objects with KEY=VALUE, and removes them with KEY-. The
labels of a running pod change at once, also for Services and in its downward
volumes. --list shows them.

Examples:
  podrun label pod/web tier=front
  podrun label pod web tier=back --overwrite
  podrun label configmaps --all team-
  podrun label deployment/web --list
`,
	})
}

// NewAnnotateCommand returns the command annotate.
func NewAnnotateCommand(env *cmdutil.Env) *cli.Command {
	return newCommand(env, &cli.Command{
		Name:  "annotate",
		Usage: "set or remove annotations",
		Description: `Sets annotations of pods and objects with KEY=VALUE, and removes them with KEY-.
--list shows them.

Examples:
  podrun annotate pod/web description='the front end'
  podrun annotate deployment/web kubernetes.io/change-cause="version 1.4"
  podrun annotate pod web description-
`,
	})
}

func newCommand(env *cmdutil.Env, c *cli.Command) *cli.Command {
	c.ArgsUsage = "KIND/NAME... KEY=VALUE... KEY-..."
	c.Flags = resource.TargetFlags(
		&cli.BoolFlag{Name: "overwrite", Usage: "replace existing values"},
		&cli.BoolFlag{Name: "list", Usage: "show what the objects have"},
		cmdutil.DryRunFlag("change nothing, but check the change and print what would be done (=none, =client or =server)"),
	)
	c.Action = cmdutil.Action(func() cmdutil.Command { return &options{env: env} })
	return c
}

// options are the command line of label or annotate.
type options struct {
	env             *cmdutil.Env
	dirs            store.Dirs
	annotate        bool
	named           *resource.Targets
	set             map[string]string
	remove          []string
	overwrite, list bool
	dryRun          cmdutil.DryRun
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.annotate = c.Command.Name == "annotate"
	o.overwrite, o.list, o.dryRun = c.Bool("overwrite"), c.Bool("list"), cmdutil.DryRunOf(c)
	words, changes, err := resource.SplitChanges(c.Command.Name, c.Args().Slice())
	if err != nil {
		return err
	}
	o.set = map[string]string{}
	for _, change := range changes {
		key, value, set := strings.Cut(change, "=")
		if !set {
			o.remove = append(o.remove, strings.TrimSuffix(change, "-"))
			continue
		}
		o.set[key] = value
	}
	o.named, err = resource.TargetsOf(o.env, c, words)
	return err
}

// Validate checks the keys and values, with the rules of the API server (ValidateLabels and
// ValidateAnnotations of apimachinery).
func (o *options) Validate() error {
	if len(o.set)+len(o.remove) == 0 && !o.list {
		return cmdutil.UsageErrorf(o.command(), "at least one %s update is required: KEY=VALUE or KEY-", o.command())
	}
	for _, key := range slices.Sorted(maps.Keys(o.set)) {
		name := key
		if o.annotate {
			name = strings.ToLower(key)
		}
		problems := validation.IsQualifiedName(name)
		if len(problems) > 0 {
			return cmdutil.UsageErrorf(o.command(), "invalid key %q: %s", key, strings.Join(problems, "; "))
		}
		if problems = validation.IsValidLabelValue(o.set[key]); len(problems) > 0 && !o.annotate {
			return cmdutil.UsageErrorf("label", "invalid label value: %q: %s", o.set[key], strings.Join(problems, "; "))
		}
		if slices.Contains(o.remove, key) {
			return cmdutil.UsageErrorf(o.command(), "can not both modify and remove %q in the same command", key)
		}
	}
	return nil
}

func (o *options) command() string {
	if o.annotate {
		return "annotate"
	}
	return "label"
}

// Run changes the targets one after the other.
func (o *options) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	refs, err := o.named.Find(o.dirs)
	errs := []error{err}
	for _, ref := range refs {
		errs = append(errs, o.update(ctx, ref, len(refs) > 1))
	}
	return errors.Join(errs...)
}

// update changes one target, and prints what was done. several reports that there are other targets.
func (o *options) update(ctx context.Context, ref kindnames.ObjectRef, several bool) error {
	name := kindnames.DisplayRef(ref)
	var now map[string]string
	dryRun := o.dryRun
	if len(o.set)+len(o.remove) == 0 {
		dryRun = cmdutil.DryRunClient // only --list
	}
	changed, err := controller.Edit(ctx, o.env, o.dirs, ref, dryRun, func(object metav1.Object) (err error) {
		now, err = o.apply(object, name)
		return err
	})
	if err != nil {
		return err
	}
	if len(o.set)+len(o.remove) > 0 {
		word := o.result(changed)
		if o.dryRun != cmdutil.DryRunNone {
			word += o.dryRun.Suffix()
		}
		fmt.Fprintf(o.env.Out, "%s %s\n", name, word)
	}
	if !o.list {
		return nil
	}
	if several {
		fmt.Fprintf(o.env.Out, "Listing %ss for %s:\n", map[bool]string{true: "annotation", false: "label"}[o.annotate], name)
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(&text, "%s=%s\n", key, report.Escape(now[key]))
	}
	return o.env.WriteSafe([]byte(text.String()))
}

// result returns the word for what was done, as kubectl's.
func (o *options) result(changed bool) string {
	switch {
	case o.annotate:
		return "annotated"
	case !changed:
		return "not labeled"
	case len(o.set) == 0:
		return "unlabeled"
	}
	return "labeled"
}

// apply changes the labels or annotations of an object, and returns them.
func (o *options) apply(object metav1.Object, name string) (map[string]string, error) {
	get, put := object.GetLabels, object.SetLabels
	if o.annotate {
		get, put = object.GetAnnotations, object.SetAnnotations
	}
	now := maps.Clone(get())
	if now == nil {
		now = map[string]string{}
	}
	for key, value := range o.set {
		if old, ok := now[key]; ok && old != value && !o.overwrite {
			return nil, report.New(report.Failure, "--overwrite replaces it", "%s: '%s' already has a value (%s), and --overwrite is false", name, key, old)
		}
		now[key] = value
	}
	for _, key := range o.remove {
		if _, ok := now[key]; !ok && !o.annotate {
			fmt.Fprintf(o.env.Out, "label %q not found.\n", key)
		}
		delete(now, key)
	}
	put(now)
	return now, nil
}
