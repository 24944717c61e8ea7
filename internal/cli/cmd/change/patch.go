package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/kustomize"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/kustomize/api"
	"github.com/podrun/podrun/internal/store"
)

// NewPatchCommand returns the command patch.
func NewPatchCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "patch",
		Usage:     "change fields of objects by a patch",
		ArgsUsage: "KIND/NAME... | -f FILE",
		Description: `Changes fields of pods, workloads and objects, with the checks of apply: by a
strategic merge patch, which merges lists of containers, ports and the like by
their keys; by a merge patch (RFC 7386); or by a JSON patch (RFC 6902), a list
of operations. The patch is in JSON or YAML.

Examples:
  podrun patch deployment/web -p '{"spec":{"replicas":3}}'
  podrun patch pod web -p 'metadata: {labels: {tier: front}}'
  podrun patch cm settings --type=merge -p '{"data":{"color":null}}'
  podrun patch deploy web --type=json \
    -p='[{"op":"replace","path":"/spec/replicas","value":2}]'
  podrun patch service/web --patch-file patch.yaml --dry-run=client
`,
		Flags: resource.TargetFlags(
			&cli.StringFlag{Name: "patch", Aliases: []string{"p"}, Usage: "the `PATCH`"},
			&cli.StringFlag{Name: "patch-file", Usage: "read the patch from this `FILE`"},
			&cli.StringFlag{Name: "type", Value: string(api.Strategic), Usage: "the `TYPE` of the patch: strategic, merge or json"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print the object in this `FORMAT`, as get does"},
			cmdutil.DryRunFlag("change nothing, but check the change and print what would be done (=none, =client or =server)"),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &patchOptions{env: env} }),
	}
}

// patchOptions are the command line of patch.
type patchOptions struct {
	env         *cmdutil.Env
	dirs        store.Dirs
	named       *resource.Targets
	patch, file string
	kind        api.PatchType
	format      string
	dryRun      cmdutil.DryRun
}

// Complete reads the command line.
func (o *patchOptions) Complete(c *cli.Context) (err error) {
	o.patch, o.file, o.kind = c.String("patch"), c.String("patch-file"), api.PatchType(c.String("type"))
	o.format, o.dryRun = c.String("output"), cmdutil.DryRunOf(c)
	o.named, err = resource.TargetsOf(o.env, c, c.Args().Slice())
	return err
}

// Validate checks the options.
func (o *patchOptions) Validate() error {
	switch {
	case o.patch != "" && o.file != "":
		return cmdutil.UsageErrorf("patch", "cannot specify --patch and --patch-file together")
	case o.patch == "" && o.file == "":
		return cmdutil.UsageErrorf("patch", "must specify --patch or --patch-file containing the contents of the patch")
	case !slices.Contains([]api.PatchType{api.JSON, api.Merge, api.Strategic}, o.kind):
		return cmdutil.UsageErrorf("patch", "--type must be one of [json merge strategic], not %q", o.kind)
	case o.format != "" && o.dryRun != cmdutil.DryRunNone:
		return cmdutil.UsageErrorf("patch", "-o and --dry-run are mutually exclusive")
	}
	return nil
}

// Run patches one target after the other.
func (o *patchOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	if o.file != "" {
		file, err := cmdutil.OpenInput(o.file)
		if err != nil {
			return cmdutil.UsageErrorf("patch", "cannot read the patch: %w", err)
		}
		defer file.Close()
		text, err := io.ReadAll(file)
		if err != nil {
			return cmdutil.UsageErrorf("patch", "cannot read the patch: %w", err)
		}
		o.patch = string(text)
	}
	refs, err := o.named.Find(o.dirs)
	errs := []error{err}
	for _, ref := range refs {
		errs = append(errs, o.apply(ctx, ref))
	}
	return errors.Join(errs...)
}

// apply patches one target. The patch is applied to the object as it is when it is changed.
func (o *patchOptions) apply(ctx context.Context, ref kindnames.ObjectRef) error {
	name := kindnames.DisplayRef(ref)
	changed, err := controller.Edit(ctx, o.env, o.dirs, ref, o.dryRun, func(object metav1.Object) error {
		text, err := encode(object)
		if err != nil {
			return err
		}
		text, err = kustomize.Patch(o.env, api.Patch{Type: o.kind, Object: text, Patch: []byte(o.patch), Schema: api.SchemaOf(reflect.TypeOf(object))})
		if err != nil {
			return err
		}
		return put(object, "the patched "+name, text)
	})
	if err != nil {
		return err
	}
	if o.format != "" {
		return printObject(o.env, ref, o.format)
	}
	word := "patched"
	if !changed {
		word += " (no change)"
	}
	if o.dryRun != cmdutil.DryRunNone {
		word += o.dryRun.Suffix()
	}
	_, err = fmt.Fprintf(o.env.Out, "%s %s\n", name, word)
	return err
}

// printObject prints a changed object as get -o does.
func printObject(env *cmdutil.Env, ref kindnames.ObjectRef, format string) error {
	words := []string{"get", kindnames.DisplayRef(ref), "-o", format}
	if ref.Namespace != "" {
		words = append(words, "-n", ref.Namespace)
	}
	return env.RunAgain(words...)
}
