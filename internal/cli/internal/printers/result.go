package printers

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// WithResult returns the maker of a command that creates or changes objects, for cmdutil.Action. With -o
// the command prints the objects, or a Status with the error, and nothing else on stdout. The inner command
// uses the Env that newCommand gets.
func WithResult(env *cmdutil.Env, newCommand func(*cmdutil.Env) cmdutil.Command) func() cmdutil.Command {
	return func() cmdutil.Command {
		inner := *env
		return &resultCommand{Command: newCommand(&inner), env: env, inner: &inner}
	}
}

// resultCommand is a command with -o.
type resultCommand struct {
	cmdutil.Command
	env, inner *cmdutil.Env
	format     string // "", json or yaml
}

// Complete reads -o, and the command line of the inner command.
func (r *resultCommand) Complete(c *cli.Context) error {
	r.format = c.String("output")
	switch {
	case r.format == "":
		return r.Command.Complete(c)
	case r.format != "json" && r.format != "yaml":
		return cmdutil.UsageErrorf(c.Command.Name, "unknown output format %q: use json or yaml", r.format)
	case c.Command.Name == "up" && !c.Bool("detach"):
		return cmdutil.UsageErrorf("up", "-o requires -d: in the foreground, up shows what the containers write")
	case cmdutil.DryRunOf(c) != cmdutil.DryRunNone:
		return cmdutil.UsageErrorf(c.Command.Name, "-o and --dry-run are mutually exclusive")
	}
	r.inner.Out = r.env.ErrOut
	return r.printFailure(r.Command.Complete(c))
}

// Validate checks the options of the inner command.
func (r *resultCommand) Validate() error { return r.printFailure(r.Command.Validate()) }

// Run runs the inner command and prints its result.
func (r *resultCommand) Run(ctx context.Context) error {
	if err := r.Command.Run(ctx); err != nil || r.format == "" {
		return r.printFailure(err)
	}
	return printChanged(r.env, r.inner.Changed, r.format)
}

// printFailure prints an error of the inner command as a Status, and returns it.
func (r *resultCommand) printFailure(err error) error {
	if err == nil || r.format == "" {
		return err
	}
	status := statusFor(err)
	if changed := r.inner.Changed; changed != nil && len(changed.Names) == 1 {
		status.Details.Kind, status.Details.Name = kindnames.Of(changed.Names[0].Kind), changed.Names[0].Names[0]
	}
	text, perr := printers.PrintList([]any{status}, true, printers.Format(r.format))
	return errors.Join(err, perr, r.env.WriteSafe(text))
}

func printChanged(env *cmdutil.Env, made *cmdutil.ChangedObjects, format string) error {
	if made == nil {
		return nil
	}
	w := &PrintOptions{Format: format, OmitValues: true}
	var err error
	if w.Printer, _, err = printers.ParsePrinter(format, false); err != nil {
		return err
	}
	var lists []*Listing
	var errs []error
	for _, o := range made.Names {
		l, err := List(env, made.Dirs, o, w)
		if errs = append(errs, err); l != nil {
			lists = append(lists, l)
		}
	}
	return errors.Join(append(errs, PrintListings(env, lists, w, len(made.Names) == 1))...)
}

// statusFor returns an error in the form of an API server.
func statusFor(err error) *metav1.Status {
	s := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: err.Error(), Details: &metav1.StatusDetails{},
	}
	var invalid *manifest.Errors
	switch {
	case errors.As(err, &invalid):
		s.Reason, s.Code = metav1.StatusReasonInvalid, 422
		for _, e := range invalid.List {
			s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: causeFor(e.Message), Field: e.Field, Message: e.Message})
		}
	case errors.Is(err, cmdutil.ErrImmutable):
		s.Reason, s.Code = metav1.StatusReasonInvalid, 422
	case image.Reason(err) != "":
		s.Reason, s.Code = metav1.StatusReason(image.Reason(err)), 500
	case errors.Is(err, cmdutil.ErrForbidden):
		s.Reason, s.Code = metav1.StatusReasonForbidden, 403
	case errors.Is(err, cmdutil.ErrNotFound):
		s.Reason, s.Code = metav1.StatusReasonNotFound, 404
	case errors.Is(err, store.ErrLocked):
		s.Reason, s.Code = metav1.StatusReasonConflict, 409
	case report.ClassOf(err) == report.Usage:
		s.Reason, s.Code = metav1.StatusReasonBadRequest, 400
	default:
		s.Reason, s.Code = metav1.StatusReasonInternalError, 500
	}
	return s
}

// causeFor returns the type of an error whose message begins as in Kubernetes.
func causeFor(message string) metav1.CauseType {
	for start, cause := range map[string]metav1.CauseType{
		"Required value": metav1.CauseTypeFieldValueRequired, "Duplicate value": metav1.CauseTypeFieldValueDuplicate,
		"Unsupported value": metav1.CauseTypeFieldValueNotSupported, "Not found": metav1.CauseTypeFieldValueNotFound,
		"Forbidden": "FieldValueForbidden", "not supported yet": metav1.CauseTypeFieldValueNotSupported,
	} {
		if strings.HasPrefix(message, start) {
			return cause
		}
	}
	return metav1.CauseTypeFieldValueInvalid
}
