package change

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewEditCommand returns the command edit.
func NewEditCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "edit",
		Usage:     "change objects in an editor",
		ArgsUsage: "KIND/NAME... | -f FILE",
		Description: `Opens pods, workloads and objects in the editor of $KUBE_EDITOR or $EDITOR (vi),
one after the other, and applies the changes with the checks of apply. An object
that is not valid is opened again, with the reasons as comments. A file that is
not changed, or empty, changes nothing.

Examples:
  podrun edit deployment/web
  KUBE_EDITOR="nano -w" podrun edit configmap settings
`,
		Flags: resource.TargetFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "yaml", Usage: "edit in this `FORMAT`: yaml or json"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &editOptions{env: env} }),
	}
}

// editOptions are the command line of edit.
type editOptions struct {
	env    *cmdutil.Env
	dirs   store.Dirs
	named  *resource.Targets
	format printers.Format
}

// Complete reads the command line.
func (o *editOptions) Complete(c *cli.Context) (err error) {
	o.format = printers.Format(c.String("output"))
	o.named, err = resource.TargetsOf(o.env, c, c.Args().Slice())
	return err
}

// Validate checks the options.
func (o *editOptions) Validate() error {
	if o.format != printers.YAML && o.format != printers.JSON {
		return cmdutil.UsageErrorf("edit", "unknown output format %q: use yaml or json", o.format)
	}
	return nil
}

// Run edits one target after the other.
func (o *editOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	refs, err := o.named.Find(o.dirs)
	errs := []error{err}
	for _, ref := range refs {
		errs = append(errs, o.edit(ctx, ref))
	}
	return errors.Join(errs...)
}

// The comments at the head of the file (k8s.io/kubectl/pkg/cmd/util/editor/editoptions.go).
const head = `# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
`

// edit edits one target until it is applied, or the user gives up.
func (o *editOptions) edit(ctx context.Context, ref kindnames.ObjectRef) error {
	original, err := read(ctx, o.env, o.dirs, ref)
	if err != nil {
		return err
	}
	shown, err := o.text(original)
	if err != nil {
		return err
	}
	name, reasons := kindnames.DisplayRef(ref), ""
	for {
		file, edited, err := o.inEditor(ref, head+reasons+string(shown))
		if err != nil {
			return o.keep(file, err)
		}
		switch {
		case len(edited) == 0:
			fmt.Fprintln(o.env.ErrOut, "Edit cancelled, saved file was empty.")
			return os.Remove(file)
		case bytes.Equal(edited, bytes.TrimSpace(shown)) && reasons == "":
			fmt.Fprintln(o.env.ErrOut, "Edit cancelled, no changes made.")
			return os.Remove(file)
		case bytes.Equal(edited, bytes.TrimSpace(shown)):
			return o.keep(file, report.New(report.Failure, "podrun replace -f "+file+" tries it again", "Edit cancelled, no valid changes were saved"))
		}
		changed, err := controller.Edit(ctx, o.env, o.dirs, ref, cmdutil.DryRunNone, func(object metav1.Object) error {
			now, err := encode(object)
			if err == nil && !bytes.Equal(now, original) {
				err = report.New(report.Failure, "edit it again", "%s was changed meanwhile", name)
			}
			if err == nil {
				err = put(object, "the edited "+name, edited)
			}
			return err
		})
		switch {
		case err == nil && !changed:
			fmt.Fprintln(o.env.ErrOut, "Edit cancelled, no changes made.")
			return os.Remove(file)
		case err == nil:
			_, err = fmt.Fprintf(o.env.Out, "%s edited\n", name)
			return errors.Join(err, os.Remove(file))
		case errors.Is(err, cmdutil.ErrNotFound):
			return o.keep(file, err)
		}
		reasons, shown = comments(name, err), append(edited, '\n')
		if err := os.Remove(file); err != nil {
			return err
		}
	}
}

// text returns an object as it is edited.
func (o *editOptions) text(object []byte) ([]byte, error) {
	found, err := manifest.Decode("the stored object", object)
	if err != nil {
		return nil, err
	}
	return printers.PrintList([]any{found[0].Value}, true, o.format)
}

// comments returns an error as lines of comments.
func comments(name string, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s was not valid:\n", name)
	for _, part := range report.Parts(err) {
		for line := range strings.Lines(part.Error()) {
			fmt.Fprintf(&b, "# * %s\n", report.Escape(strings.TrimSuffix(line, "\n")))
		}
	}
	return b.String() + "#\n"
}

// keep reports where the edited file is, and returns err.
func (o *editOptions) keep(file string, err error) error {
	if file != "" {
		fmt.Fprintf(o.env.ErrOut, "A copy of your changes has been stored to %q\n", file)
	}
	return err
}

// inEditor opens a text in the user's editor, and returns what was saved without comments, and its file. A Secret is in
// memory, as the stored one.
func (o *editOptions) inEditor(ref kindnames.ObjectRef, text string) (name string, edited []byte, err error) {
	dir := ""
	if ref.Kind == pod.KindSecret {
		dir = o.dirs.Runtime
	}
	file, err := os.CreateTemp(dir, "podrun-edit-*."+string(o.format))
	if err != nil {
		return "", nil, fmt.Errorf("make the file to edit: %w", err)
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return file.Name(), nil, fmt.Errorf("write the file to edit: %w", err)
	}
	editor := cmp.Or(o.env.Getenv("KUBE_EDITOR"), o.env.Getenv("EDITOR"), "vi")
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", file.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.env.In, o.env.Out, o.env.ErrOut
	if err := cmd.Run(); err != nil {
		return file.Name(), nil, report.New(report.Failure, "KUBE_EDITOR or EDITOR names another", "there was a problem with the editor %q: %w", editor, err)
	}
	saved, err := os.ReadFile(file.Name())
	if err != nil {
		return file.Name(), nil, fmt.Errorf("read the edited file: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(saved)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return file.Name(), bytes.TrimSpace([]byte(strings.Join(lines, ""))), nil
}
