package resource

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
)

// WithoutEffect returns the objects, and the storage, that have no effect on one machine.
func (d *Documents) WithoutEffect() []manifest.Object {
	return append(slices.Clone(d.Ignored), unmountable(d.Stored)...)
}

// ReportIgnored reports each kind of object that has no effect on one machine, once. If strict, that is an error.
func ReportIgnored(out io.Writer, ignored []manifest.Object, strict bool) error {
	reported := map[string]bool{}
	var errs []error
	for i := range ignored {
		object := &ignored[i]
		if reported[object.Kind+object.Ignored] {
			continue
		}
		reported[object.Kind+object.Ignored] = true
		if text := fmt.Sprintf("%s: %s %s has no effect: %s", Location(object), object.Kind, object.Name(), object.Ignored); strict {
			errs = append(errs, report.New(report.Usage, "remove it, or omit --strict", "%s", text))
		} else {
			fmt.Fprintln(out, report.Escape("podrun: warning: "+text))
		}
	}
	return errors.Join(errs...)
}

// unmountable returns the PersistentVolumes of kinds that podrun does not mount.
func unmountable(stored []manifest.Object) (list []manifest.Object) {
	for _, object := range stored {
		if v := object.Stored.PersistentVolume; v != nil && !v.Mountable() {
			object.Ignored = fmt.Sprintf("podrun does not mount volumes of kind %s; a pod that needs it is an error", v.Source)
			list = append(list, object)
		}
	}
	return list
}
