package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// exitDiffers is diff's exit code if there are differences, as with kubectl and diff(1). Errors have
// greater codes.
const (
	exitDiffers = 1
	exitTrouble = 2
)

// NewDiffCommand returns the command diff.
func NewDiffCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what apply would change",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL|oci://REF | -k DIR | -",
		Description: `Compares manifests with the existing objects and prints what podrun apply, or
up, would create or change, as a unified diff of YAML with defaults filled in.
The values of Secrets are not shown, only which of them change. Nothing is
changed.

The exit code is 0 if nothing would change, 1 if something would, and greater if
the comparison failed.

Examples:
  podrun diff -f web.yaml
  podrun diff web.yaml && echo unchanged
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "compare the objects of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.PathFlag(),
			cmdutil.EnvFileFlag(),
			cmdutil.ManifestNamespaceFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &diffOptions{manifestOptions{env: env}} }),
	}
}

// diffOptions are the options of diff.
type diffOptions struct{ manifestOptions }

// Complete reads the command line.
func (o *diffOptions) Complete(c *cli.Context) error {
	if err := o.complete(c); err != nil {
		return err
	}
	o.named = "diff"
	return nil
}

// Validate checks the options.
func (o *diffOptions) Validate() error {
	if len(o.files) == 0 {
		return cmdutil.UsageErrorf("diff", "diff requires files")
	}
	return nil
}

// Run prints the differences. They have an exit code of their own.
func (o *diffOptions) Run(context.Context) error {
	differs, err := o.printDifferences()
	switch {
	case err != nil && exitcode.Of(err) == exitDiffers:
		return &exitcode.Error{Code: exitTrouble, Err: err}
	case err == nil && differs:
		return &exitcode.Error{Code: exitDiffers}
	}
	return err
}

func (o *diffOptions) printDifferences() (differs bool, err error) {
	docs, _, err := o.read()
	if err != nil {
		return false, err
	}
	env := o.env
	dirs, err := env.Dirs()
	if err == nil {
		err = admission.AddAllPullSecrets(dirs, docs)
	}
	if err != nil {
		return false, err
	}
	var errs []error
	show := func(name string, old, next []byte, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		text := diff.Diff("live/"+name, old, "merged/"+name, next)
		differs = differs || len(text) > 0
		if err := env.WriteSafe(text); err != nil {
			errs = append(errs, err)
		}
	}
	for _, o := range slices.Concat(docs.Stored, docs.Workloads) {
		old, next, err := storedDiff(env, dirs, &o)
		show(kindnames.Display(o.Stored), old, next, err)
	}
	for i := range docs.Pods {
		old, next, err := podDiff(dirs, &docs.Pods[i])
		show("pod/"+docs.Pods[i].Pod.Name, old, next, err)
	}
	return differs, errors.Join(errs...)
}

// podDiff returns a running pod's manifest and the new one, as YAML.
func podDiff(dirs store.Dirs, o *manifest.Object) (old, next []byte, err error) {
	planned := o.Pod.DeepCopy()
	p := dirs.Pod(o.Pod.Namespace, o.Pod.Name)
	if text, err := p.Manifest(); err == nil {
		there, err := manifest.Unmarshal(text)
		if err != nil {
			return nil, nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
		}
		podutil.FillSystemFields(planned, string(there.UID), there.CreationTimestamp.Time)
		podutil.KeepHostPorts(there, planned)
		planned.Generation = max(o.Pod.Generation, there.Generation)
		planned.Spec.EphemeralContainers = build.MergeEphemeralContainers(there, planned)
		if old, err = printers.PrintPod(there, printers.YAML); err != nil {
			return nil, nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	} else if err := podup.RefuseEphemeral(o); err != nil {
		return nil, nil, err
	}
	next, err = printers.PrintPod(planned, printers.YAML)
	return old, next, err
}

// storedDiff returns a stored object and the new one, as YAML.
func storedDiff(env *cmdutil.Env, dirs store.Dirs, o *manifest.Object) (old, next []byte, err error) {
	k, err := objects.Compare(env, dirs, o)
	if err != nil {
		return nil, nil, err
	}
	there, err := dirs.Object(k.Object.Kind, k.Object.Namespace, k.Object.Name)
	if errors.Is(err, fs.ErrNotExist) {
		there, err = nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	a, b := redacted(there, k.Object)
	if old, err = asYAML(a); err != nil {
		return nil, nil, err
	}
	next, err = asYAML(b)
	return old, next, err
}

func asYAML(o *pod.Object) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	var item any
	var err error
	if kindnames.IsWorkload(o.Kind) {
		item, err = conversion.WorkloadToKubernetes(o)
	} else {
		item, err = conversion.ToKubernetes(o)
	}
	if err != nil {
		return nil, err
	}
	return printers.PrintList([]any{item}, true, printers.YAML)
}

// redacted returns two states of an object without what a diff must not print: the values of a Secret,
// and fields that every change updates.
func redacted(old, next *pod.Object) (a, b *pod.Object) {
	hide := func(o, other *pod.Object, word string) *pod.Object {
		if o == nil {
			return nil
		}
		plain := *o
		plain.Revision = 0
		if old == nil {
			plain.UID, plain.CreatedAt = "", time.Time{}
		}
		if o.Secret != nil {
			s := *o.Secret
			s.Data = map[string][]byte{}
			for key, value := range o.Secret.Data {
				s.Data[key] = []byte("***")
				if other != nil && other.Secret != nil && string(other.Secret.Data[key]) != string(value) {
					s.Data[key] = []byte("*** (" + word + ")")
				}
			}
			plain.Secret = &s
		}
		return &plain
	}
	return hide(old, next, "before"), hide(next, old, "after")
}
