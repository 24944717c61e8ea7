package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewReplaceCommand returns the command replace.
func NewReplaceCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "replace",
		Usage:     "replace existing objects by the objects of files",
		ArgsUsage: "-f FILE | -k DIRECTORY",
		Description: `Replaces existing pods, workloads and objects by the objects of files, and
checks them as apply does; an object that does not exist is an error. With
--force the objects are deleted, if they exist, and created again: that changes
what cannot be changed in place.

Examples:
  podrun replace -f web.yaml
  podrun get deployment/web -o yaml | sed s/1.4/1.5/ | podrun replace -f -
  podrun replace --force -f pod.yaml
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "the objects of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "force", Usage: "delete the objects, if they exist, and create them"},
			&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "with --force: wait this many `SECONDS` before SIGKILL"},
			cmdutil.DryRunFlag("change nothing, but check the change and print what would be done (=none, =client or =server)"),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &replaceOptions{env: env} }),
	}
}

// replaceOptions are the command line of replace.
type replaceOptions struct {
	env          *cmdutil.Env
	dirs         store.Dirs
	words, files []string
	force        bool
	grace        int64
	dryRun       cmdutil.DryRun
}

// Complete reads the command line.
func (o *replaceOptions) Complete(c *cli.Context) (err error) {
	o.words, o.force, o.grace, o.dryRun = c.Args().Slice(), c.Bool("force"), c.Int64("grace-period"), cmdutil.DryRunOf(c)
	o.files, err = resource.FilesOf(o.env, c, nil)
	return err
}

// Validate checks the options.
func (o *replaceOptions) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf("replace", "replace takes files only: unexpected %q", o.words[0])
	case len(o.files) == 0:
		return cmdutil.UsageErrorf("replace", "must specify --filename to replace")
	case o.grace >= 0 && !o.force:
		return cmdutil.UsageErrorf("replace", "--grace-period must have --force specified")
	case o.force && o.dryRun != cmdutil.DryRunNone:
		return cmdutil.UsageErrorf("replace", "--dry-run can not be used when --force is set")
	}
	return nil
}

// Run replaces the objects of the files.
func (o *replaceOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	found, err := resource.NamedInFiles(o.env, o.files)
	if err != nil {
		return err
	}
	if o.force {
		return o.createAgain(found)
	}
	var errs []error
	for i := range found {
		errs = append(errs, o.replace(ctx, &found[i]))
	}
	return errors.Join(errs...)
}

// replace replaces one object.
func (o *replaceOptions) replace(ctx context.Context, next *manifest.Object) error {
	if next.Value == nil {
		return report.New(report.Usage, "", "%s: podrun does not store %s objects", resource.Location(next), next.Kind)
	}
	ref := kindnames.ObjectRef{Kind: pod.ObjectKind(next.Kind), Namespace: next.Value.GetNamespace(), Name: next.Name()}
	if next.Pod != nil {
		ref.Kind = ""
	}
	text, err := encode(next.Value)
	if err != nil {
		return err
	}
	_, err = controller.Edit(ctx, o.env, o.dirs, ref, o.dryRun, func(object metav1.Object) error {
		return put(object, resource.Location(next), text)
	})
	if err != nil {
		return err
	}
	word := "replaced"
	if o.dryRun != cmdutil.DryRunNone {
		word += o.dryRun.Suffix()
	}
	_, err = fmt.Fprintf(o.env.Out, "%s %s\n", kindnames.DisplayRef(ref), word)
	return err
}

// createAgain deletes the objects and creates them.
func (o *replaceOptions) createAgain(found []manifest.Object) error {
	var text bytes.Buffer
	for i := range found {
		if found[i].Value == nil {
			continue
		}
		one, err := encode(found[i].Value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s\n", one)
	}
	remove := []string{"delete", "--ignore-not-found", "-f", "-"}
	if o.grace >= 0 {
		remove = append(remove, fmt.Sprintf("--grace-period=%d", o.grace))
	}
	inner := *o.env
	inner.In, inner.NamespaceFlag = bytes.NewReader(text.Bytes()), ""
	if err := inner.RunAgain(remove...); err != nil {
		return err
	}
	var out strings.Builder
	inner.In, inner.Out = bytes.NewReader(text.Bytes()), &out
	err := inner.RunAgain("apply", "-f", "-")
	_, werr := fmt.Fprint(o.env.Out, strings.ReplaceAll(out.String(), " created\n", " replaced\n"))
	return errors.Join(err, werr)
}
