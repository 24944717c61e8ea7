package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// objectWords takes the words for objects that are kept apart: a kind and names, or
// KIND/NAME. ok is false if they are about something else.
func objectWords(words []string) (kind pod.ObjectKind, names []string, ok bool) {
	if len(words) == 0 {
		return "", nil, false
	}
	first, name, slashed := strings.Cut(words[0], "/")
	for _, o := range objectKinds() {
		if slices.Contains(o.words, strings.ToLower(first)) {
			kind, ok = o.kind, true
		}
	}
	if !slashed {
		return kind, words[1:], ok
	}
	names = []string{name}
	for _, word := range words[1:] {
		names = append(names, strings.TrimPrefix(word, first+"/"))
	}
	return kind, names, ok
}

// getObjects shows what is kept of a kind.
func (f *front) getObjects(c *cli.Context, kind pod.ObjectKind, names []string) error {
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	if makesPods(kind) {
		return f.getWorkloads(c, dirs, kind, names)
	}
	var list []*pod.Object
	var errs []error
	if len(names) == 0 {
		list, err = dirs.Objects(kind, namespaceOf(c, kind))
		errs = append(errs, err)
	}
	for _, name := range names {
		o, err := object(dirs, kind, c.String("namespace"), name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, o)
	}
	if failed := errors.Join(errs...); len(list) == 0 && failed != nil {
		return failed
	}
	return errors.Join(append(errs, f.printKept(c, kind, list, len(names) == 1))...)
}

// namespaceOf is where objects of a kind are looked for; "" is everywhere.
func namespaceOf(c *cli.Context, kind pod.ObjectKind) string {
	if kind == pod.KindNamespace || c.Bool("all-namespaces") {
		return ""
	}
	return c.String("namespace")
}

// object is one that the user has named.
func object(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*pod.Object, error) {
	if kind == pod.KindNamespace {
		namespace = ""
	}
	o, err := dirs.Object(kind, namespace, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrName) {
		hint := fmt.Sprintf("podrun get %s lists those of a namespace", kindWord(kind))
		if namespace == "" || namespace == defaultNamespace {
			return nil, report.New(report.Failure, hint, "%s %q not found", kindWord(kind), name)
		}
		return nil, report.New(report.Failure, hint, "%s %q not found in namespace %q", kindWord(kind), name, namespace)
	}
	return o, err
}

func (f *front) printKept(c *cli.Context, kind pod.ObjectKind, list []*pod.Object, single bool) error {
	render := func(o *pod.Object) (any, error) { return manifest.Kubernetes(o, c.Bool("show-secrets")) }
	object := func(o *pod.Object) *pod.Object { return o }
	if printed, err := printAs(f, c.String("output"), list, single, render, object); printed {
		return err
	}
	all := c.Bool("all-namespaces") && kind != pod.KindNamespace
	if len(list) == 0 {
		where := fmt.Sprintf(" in %s namespace.", c.String("namespace"))
		if namespaceOf(c, kind) == "" {
			where = ""
		}
		fmt.Fprintln(f.err, "No resources found"+where)
		return nil
	}
	wide := c.String("output") == "wide"
	rows := [][]string{manifest.ObjectHead(kind, wide)}
	for _, o := range list {
		rows = append(rows, manifest.ObjectRow(o, wide, time.Now()))
	}
	if all {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
		for i, o := range list {
			rows[i+1] = append([]string{o.Namespace}, rows[i+1]...)
		}
	}
	return f.table(rows)
}
