package cli

import (
	"fmt"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
)

// warnOfIdle says once of every kind of object that means nothing on one machine.
func (f *front) warnOfIdle(idle []manifest.Object) {
	said := map[string]bool{}
	for i := range idle {
		if o := &idle[i]; !said[o.Kind] {
			said[o.Kind] = true
			fmt.Fprintln(f.err, report.Escape(fmt.Sprintf("podrun: warning: %s: %s %s has no effect: %s", where(o), o.Kind, o.Name(), o.Idle)))
		}
	}
}
