package cli

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/printers"
)

func answerFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print the objects in this `FORMAT`, json or yaml, and an error as an object of kind Status"}
}

// answered runs a command that makes or changes objects. With -o it prints them, or as a Status
// why it failed, and nothing else on stdout.
func (f *front) answered(c *cli.Context, do func(*front, *cli.Context) error) error {
	format := c.String("output")
	switch {
	case format == "":
		return do(f, c)
	case format != "json" && format != "yaml":
		return usageErrorf(c.Command.Name, "unknown output format %q: it is json or yaml", format)
	case c.Command.Name == "up" && !c.Bool("detach"):
		return usageErrorf("up", "-o goes with -d: in the foreground, up shows what the containers write")
	case dryRunOf(c) != dryNone:
		return usageErrorf(c.Command.Name, "-o and --dry-run do not go together")
	}
	quiet := *f
	quiet.out = f.err
	err := do(&quiet, c)
	if err != nil {
		status := statusOf(err)
		if quiet.made != nil && len(quiet.made.names) == 1 {
			status.Details.Kind, status.Details.Name = kindWord(quiet.made.names[0].kind), quiet.made.names[0].names[0]
		}
		text, perr := printers.PrintList([]any{status}, true, printers.Format(format))
		return errors.Join(err, perr, f.show(text))
	}
	return f.printMade(quiet.made, format)
}

// madeObjects are the objects that a command has made or changed.
type madeObjects struct {
	dirs  store.Dirs
	names []asked
}

func (l *launch) made() *madeObjects {
	m := &madeObjects{dirs: l.dirs}
	for _, list := range [][]manifest.Object{l.stored, l.workloads} {
		for _, o := range list {
			m.names = append(m.names, asked{o.Stored.Kind, []string{o.Stored.Name}, o.Stored.Namespace})
		}
	}
	for _, p := range l.pods {
		m.names = append(m.names, asked{"", []string{p.place.Name}, p.place.Namespace})
	}
	return m
}

func (f *front) printMade(made *madeObjects, format string) error {
	if made == nil {
		return nil
	}
	w := &getWishes{format: format}
	var err error
	if w.program, _, err = printers.ParsePrinter(format, false); err != nil {
		return err
	}
	var lists []*listing
	var errs []error
	for _, o := range made.names {
		l, err := f.list(made.dirs, o, w)
		if errs = append(errs, err); l != nil {
			lists = append(lists, l)
		}
	}
	return errors.Join(append(errs, f.print(lists, w, len(made.names) == 1))...)
}

var (
	errForbidden = errors.New("forbidden")
	errNotFound  = errors.New("not found")
)

// statusOf is an error as an API server reports one.
func statusOf(err error) *metav1.Status {
	s := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: err.Error(), Details: &metav1.StatusDetails{},
	}
	var invalid *manifest.Errors
	switch {
	case errors.As(err, &invalid):
		s.Reason, s.Code = metav1.StatusReasonInvalid, 422
		for _, e := range invalid.List {
			s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: causeOf(e.Message), Field: e.Field, Message: e.Message})
		}
	case errors.Is(err, errOtherManifest):
		s.Reason, s.Code = metav1.StatusReasonInvalid, 422
	case image.Reason(err) != "":
		s.Reason, s.Code = metav1.StatusReason(image.Reason(err)), 500
	case errors.Is(err, errForbidden):
		s.Reason, s.Code = metav1.StatusReasonForbidden, 403
	case errors.Is(err, errNotFound):
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

// causeOf is the type of a mistake, whose message begins as Kubernetes' does.
func causeOf(message string) metav1.CauseType {
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
