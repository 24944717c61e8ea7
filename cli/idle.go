package cli

import (
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
)

// judgeIdle says once of every kind of object that means nothing on one machine. If
// strict, it is an error.
func (f *front) judgeIdle(idle []manifest.Object, strict bool) error {
	said := map[string]bool{}
	var errs []error
	for i := range idle {
		o := &idle[i]
		if said[o.Kind] {
			continue
		}
		said[o.Kind] = true
		if text := fmt.Sprintf("%s: %s %s has no effect: %s", where(o), o.Kind, o.Name(), o.Ignored); strict {
			errs = append(errs, report.New(report.Usage, "remove it, or leave out --strict", "%s", text))
		} else {
			fmt.Fprintln(f.err, report.Escape("podrun: warning: "+text))
		}
	}
	return errors.Join(errs...)
}
