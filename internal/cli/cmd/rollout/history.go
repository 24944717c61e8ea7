package rollout

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/describe"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/workload"
)

func newHistoryCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "list the revisions of a workload, or show one",
		ArgsUsage: usage,
		Description: `Lists the kept revisions, the newest last, with their change-cause: the
workload's annotation kubernetes.io/change-cause while the revision was the
newest. --revision shows the template of one.

Examples:
  podrun rollout history deployment/web
  podrun rollout history deployment/web --revision 2
  podrun annotate deployment/web kubernetes.io/change-cause="version 1.4"
`,
		Flags:  resource.TargetFlags(&cli.IntFlag{Name: "revision", Usage: "show the template of revision `N`"}),
		Action: cmdutil.Action(func() cmdutil.Command { return &historyOptions{targets: targets{env: env}} }),
	}
}

type historyOptions struct {
	targets
	revision int // 0: list all
}

func (o *historyOptions) Complete(c *cli.Context) error {
	o.revision = c.Int("revision")
	return o.complete(c)
}

func (o *historyOptions) Validate() error {
	if o.revision < 0 {
		return cmdutil.UsageErrorf("rollout history", "--revision must be positive")
	}
	return nil
}

// Run prints the history of each workload, in the form of kubectl.
func (o *historyOptions) Run(context.Context) error {
	list, err := o.workloads()
	errs := []error{err}
	for _, v := range list {
		text, err := o.history(v)
		if err == nil {
			err = o.env.WriteSafe([]byte(text + "\n"))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *historyOptions) history(v *resource.WorkloadInfo) (string, error) {
	revisions := revisionsOf(v)
	if o.revision == 0 {
		rows := [][]string{{"REVISION", "CHANGE-CAUSE"}}
		for _, r := range revisions {
			rows = append(rows, []string{strconv.Itoa(r.Number), cmp.Or(r.Cause, "<none>")})
		}
		return v.Name() + "\n" + describe.Columns(rows), nil
	}
	r, err := findRevision(v, o.revision)
	if err != nil {
		return "", err
	}
	t, err := workloads.TemplateOf(r)
	if err != nil {
		return "", err
	}
	if r.Cause != "" {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, workloads.ChangeCause, r.Cause)
	}
	return v.Name() + " with revision #" + strconv.Itoa(r.Number) + "\n" + describe.Template(t), nil
}

// revisionsOf returns the kept revisions, the newest last, with one that the controller has not seen yet.
func revisionsOf(v *resource.WorkloadInfo) []workload.Revision {
	return v.Decide(time.Now()).State.Revisions
}

func findRevision(v *resource.WorkloadInfo, number int) (*workload.Revision, error) {
	revisions := revisionsOf(v)
	i := slices.IndexFunc(revisions, func(r workload.Revision) bool { return r.Number == number })
	if i < 0 {
		return nil, report.New(report.Failure, "podrun rollout history "+v.Name()+" lists the revisions", "unable to find specified revision %d in history", number)
	}
	return &revisions[i], nil
}
