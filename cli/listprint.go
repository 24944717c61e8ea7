package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

// getWishes is how get shows what.
type getWishes struct {
	namespace   string
	all         bool   // namespaces
	format      string // "", wide, json, yaml, name, or that of program
	program     printers.Printer
	labels      printers.Selector
	fields      printers.FieldSelector
	sortBy      *printers.Sorter
	bare        bool // with name: without the kind
	noHeaders   bool
	showLabels  bool
	showSecrets bool
}

// in is where things of a kind are looked for; "" is everywhere.
func (w *getWishes) in(kind pod.ObjectKind) string {
	if kind == pod.KindNamespace || w.all {
		return ""
	}
	return w.namespace
}

// choose drops what selectors do not ask for, and puts the rest in order.
func (w *getWishes) choose(l *listing) error {
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return !w.labels.Matches(e.labels) })
	if w.fields == nil && w.sortBy == nil {
		return nil
	}
	items := map[string]any{}
	for i := range l.entries {
		object, err := l.entries[i].object()
		if err != nil {
			return err
		}
		items[l.entries[i].key()] = object
	}
	var failed error
	if w.fields != nil {
		l.entries = slices.DeleteFunc(l.entries, func(e entry) bool {
			ok, err := w.fields(items[e.key()])
			if err != nil {
				failed = err
			}
			return !ok
		})
	}
	if w.sortBy != nil {
		slices.SortStableFunc(l.entries, func(a, b entry) int {
			order, err := w.sortBy.Compare(items[a.key()], items[b.key()])
			if err != nil {
				failed = err
			}
			return order
		})
	}
	return failed
}

// print shows listings. single: one thing was asked for by its name, so there is no List.
func (f *front) print(lists []*listing, w *getWishes, single bool) error {
	switch {
	case w.format == "name":
		for _, l := range lists {
			for _, e := range l.entries {
				name := l.kind + "/" + e.name
				if w.bare {
					name = e.name
				}
				if _, err := fmt.Fprintln(f.out, name); err != nil {
					return err
				}
			}
		}
		return nil
	case w.program != nil:
		var items []any
		for _, l := range lists {
			for _, e := range l.entries {
				object, err := e.object()
				if err != nil {
					return err
				}
				items = append(items, object)
			}
		}
		text, err := w.program(items, single)
		if err != nil {
			return err
		}
		err = f.show(text)
		return err
	}
	return f.printTables(lists, w)
}

// printTables shows a table of each kind of which there is something.
func (f *front) printTables(lists []*listing, w *getWishes) error {
	several := len(lists) > 1
	lists = slices.DeleteFunc(slices.Clone(lists), func(l *listing) bool { return several && len(l.entries) == 0 })
	if len(lists) == 0 || len(lists[0].entries) == 0 {
		fmt.Fprintln(f.err, reading.Empty(w.namespace, w.all || len(lists) > 0 && lists[0].nowhere))
		return nil
	}
	for i, l := range lists {
		if i > 0 {
			fmt.Fprintln(f.out)
		}
		rows, err := w.rows(l, several)
		if err != nil {
			return err
		}
		if w.noHeaders {
			rows = rows[1:]
		}
		if err := f.table(rows); err != nil {
			return err
		}
	}
	return nil
}

// rows are a listing's lines under their head. prefixed: names are KIND/NAME.
func (w *getWishes) rows(l *listing, prefixed bool) ([][]string, error) {
	wide := w.format == "wide"
	rows := [][]string{w.line(l, l.head(wide), "NAMESPACE", "LABELS")}
	now := time.Now()
	for i := range l.entries {
		e := &l.entries[i]
		row, err := e.row(wide, now)
		if err != nil {
			return nil, err
		}
		if prefixed {
			row[0] = l.kind + "/" + row[0]
		}
		rows = append(rows, w.line(l, row, e.namespace, printers.FormatLabels(e.labels)))
	}
	return rows, nil
}

// line adds the columns that options ask for.
func (w *getWishes) line(l *listing, row []string, namespace, labels string) []string {
	if w.all && !l.nowhere {
		row = append([]string{namespace}, row...)
	}
	if w.showLabels {
		row = append(row, labels)
	}
	return row
}
