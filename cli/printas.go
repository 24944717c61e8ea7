package cli

import (
	"fmt"

	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// printAs prints what is kept in a format for programs: json, yaml or name. printed: the
// format is one of these. single: one was asked for by its name, so there is no List.
func printAs[T any](f *front, format string, list []T, single bool, render func(T) (any, error), object func(T) *pod.Object) (printed bool, err error) {
	switch format {
	case "json", "yaml":
		var items []any
		for _, one := range list {
			item, err := render(one)
			if err != nil {
				return true, err
			}
			items = append(items, item)
		}
		text, err := manifest.PrintAll(items, single, manifest.Format(format))
		if err != nil {
			return true, err
		}
		_, err = f.out.Write(text)
		return true, err
	case "name":
		for _, one := range list {
			if _, err := fmt.Fprintln(f.out, nameOf(object(one))); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}
