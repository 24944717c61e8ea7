package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// now is the workload with what is known of it, for those who show it.
func (v *view) now() *manifest.WorkloadNow {
	d := v.decide(time.Now())
	n := &manifest.WorkloadNow{Object: v.object, Spec: v.spec, State: &v.state, Counts: d.Counts}
	for _, j := range v.jobs {
		if over, _ := j.state.Ended(); !over {
			n.Jobs = append(n.Jobs, j.object.Name)
		}
	}
	return n
}

// workloadNamed is a workload that the user has named.
func workloadNamed(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*view, error) {
	if _, err := object(dirs, kind, namespace, name); err != nil {
		return nil, err
	}
	w, err := dirs.Workload(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	v, err := viewOf(dirs, w)
	if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
		_, err = object(dirs, kind, namespace, name)
	}
	return v, err
}

// getWorkloads shows the workloads of a kind.
func (f *front) getWorkloads(c *cli.Context, dirs store.Dirs, kind pod.ObjectKind, names []string) error {
	f.revive(dirs)
	var list []*manifest.WorkloadNow
	var errs []error
	if len(names) == 0 {
		places, err := dirs.Workloads(namespaceOf(c, kind), kind)
		if err != nil {
			return err
		}
		for _, w := range places {
			v, err := viewOf(dirs, w)
			switch {
			case err == nil:
				list = append(list, v.now())
			case !errors.Is(err, fs.ErrNotExist):
				errs = append(errs, err)
			}
		}
	}
	for _, name := range names {
		v, err := workloadNamed(dirs, kind, c.String("namespace"), name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, v.now())
	}
	if len(list) == 0 && len(errs) > 0 {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, f.printWorkloads(c, kind, list, len(names) == 1))...)
}

func (f *front) printWorkloads(c *cli.Context, kind pod.ObjectKind, list []*manifest.WorkloadNow, single bool) error {
	render := func(w *manifest.WorkloadNow) (any, error) { return w.Render() }
	object := func(w *manifest.WorkloadNow) *pod.Object { return w.Object }
	if printed, err := printAs(f, c.String("output"), list, single, render, object); printed {
		return err
	}
	all := c.Bool("all-namespaces")
	if len(list) == 0 {
		where := fmt.Sprintf(" in %s namespace.", c.String("namespace"))
		if all {
			where = ""
		}
		fmt.Fprintln(f.err, "No resources found"+where)
		return nil
	}
	wide := c.String("output") == "wide"
	rows := [][]string{manifest.WorkloadHead(kind, wide)}
	for _, w := range list {
		row, err := w.Row(wide, time.Now())
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if all {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
		for i, w := range list {
			rows[i+1] = append([]string{w.Object.Namespace}, rows[i+1]...)
		}
	}
	return f.table(rows)
}
