package printers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
)

// PrintOptions sets what get prints, and how.
type PrintOptions struct {
	Namespace  string
	All        bool   // all namespaces
	Format     string // "", wide, json, yaml, name, or the program's
	Printer    printers.Printer
	Labels     printers.Selector
	Fields     printers.FieldSelector
	SortBy     *printers.Sorter
	Bare       bool // with -o name: without the kind
	NoHeaders  bool
	ShowLabels bool
	OmitValues bool // print Secrets without their values
}

// namespaceOf returns the namespace to search for objects of a kind; "" for all.
func (w *PrintOptions) namespaceOf(kind pod.ObjectKind) string {
	if kind.ClusterScoped() || w.All {
		return ""
	}
	return w.Namespace
}

// Filter removes entries that the selectors do not match, and sorts the rest.
func (w *PrintOptions) Filter(l *Listing) error {
	l.Entries = slices.DeleteFunc(l.Entries, func(e Entry) bool { return !w.Labels.Matches(e.Labels) })
	if w.Fields == nil && w.SortBy == nil {
		return nil
	}
	items := map[string]any{}
	for i := range l.Entries {
		object, err := l.Entries[i].Object()
		if err != nil {
			return err
		}
		items[l.Entries[i].Key()] = object
	}
	var failed error
	if w.Fields != nil {
		l.Entries = slices.DeleteFunc(l.Entries, func(e Entry) bool {
			ok, err := w.Fields(items[e.Key()])
			if err != nil {
				failed = err
			}
			return !ok
		})
	}
	if w.SortBy != nil {
		slices.SortStableFunc(l.Entries, func(a, b Entry) int {
			order, err := w.SortBy.Compare(items[a.Key()], items[b.Key()])
			if err != nil {
				failed = err
			}
			return order
		})
	}
	return failed
}

// PrintListings prints listings. single means that one object was requested by name, so the output is not
// a List.
func PrintListings(env *cmdutil.Env, lists []*Listing, w *PrintOptions, single bool) error {
	switch {
	case w.Format == "name":
		for _, l := range lists {
			for _, e := range l.Entries {
				name := l.Kind + "/" + e.Name
				if w.Bare {
					name = e.Name
				}
				if _, err := fmt.Fprintln(env.Out, name); err != nil {
					return err
				}
			}
		}
		return nil
	case w.Printer != nil:
		text, err := w.render(env, lists, single)
		if err != nil {
			return err
		}
		return env.WriteSafe(text)
	}
	return printTables(env, lists, w)
}

// render returns the entries as the Printer writes them.
func (w *PrintOptions) render(env *cmdutil.Env, lists []*Listing, single bool) ([]byte, error) {
	var items []any
	var without []string
	for _, l := range lists {
		for i := range l.Entries {
			item, err := l.Entries[i].Object()
			if err != nil {
				return nil, err
			}
			if secret, ok := item.(*corev1.Secret); ok && w.OmitValues {
				secret.Data, without = nil, append(without, l.Kind+"/"+secret.Name)
			}
			items = append(items, item)
		}
	}
	if _, terminal := tty.File(env.Out); !terminal && len(without) > 0 {
		fmt.Fprintf(env.ErrOut, "podrun: the output is without the values of %s\n", strings.Join(without, ", "))
	}
	return w.Printer(items, single)
}

// printTables prints a table for each kind that has entries.
func printTables(env *cmdutil.Env, lists []*Listing, w *PrintOptions) error {
	several := len(lists) > 1
	lists = slices.DeleteFunc(slices.Clone(lists), func(l *Listing) bool { return several && len(l.Entries) == 0 })
	if len(lists) == 0 || len(lists[0].Entries) == 0 {
		fmt.Fprintln(env.ErrOut, podview.NoResources(w.Namespace, w.All || len(lists) > 0 && lists[0].clusterScoped))
		return nil
	}
	for i, l := range lists {
		if i > 0 {
			fmt.Fprintln(env.Out)
		}
		rows, err := w.Rows(l, several)
		if err != nil {
			return err
		}
		if w.NoHeaders {
			rows = rows[1:]
		}
		if err := env.PrintTable(rows); err != nil {
			return err
		}
	}
	return nil
}

// Rows returns a listing's rows with the header. prefixed: names are KIND/NAME.
func (w *PrintOptions) Rows(l *Listing, prefixed bool) ([][]string, error) {
	wide := w.Format == "wide"
	rows := [][]string{w.line(l, l.Head(wide), "NAMESPACE", "LABELS")}
	now := time.Now()
	for i := range l.Entries {
		e := &l.Entries[i]
		row, err := e.Row(wide, now)
		if err != nil {
			return nil, err
		}
		if prefixed {
			row[0] = l.Kind + "/" + row[0]
		}
		rows = append(rows, w.line(l, row, e.Namespace, printers.FormatLabels(e.Labels)))
	}
	return rows, nil
}

// line adds the columns of options to a row.
func (w *PrintOptions) line(l *Listing, row []string, namespace, labels string) []string {
	if w.All && !l.clusterScoped {
		row = append([]string{namespace}, row...)
	}
	if w.ShowLabels {
		row = append(row, labels)
	}
	return row
}
