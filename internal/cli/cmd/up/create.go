package up

import (
	"errors"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCreateCommand returns the flags and the action of create -f: apply that refuses existing objects.
func NewCreateCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "create the objects of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.ManifestNamespaceFlag(),
			cmdutil.ResultFormatFlag(),
			cmdutil.DryRunFlag("create nothing, but check the manifests and print what would be created (=none, =client or =server)"),
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			cmdutil.UnsafeSysctlFlag(),
			cmdutil.TLSVerifyFlag(),
		},
		Action: cmdutil.Action(printers.WithResult(env, func(env *cmdutil.Env) cmdutil.Command {
			o := &applyOptions{newRunOptions(env)}
			o.onlyNew = true
			return o
		})),
	}
}

// refuseExisting returns an error that names the objects that exist.
func refuseExisting(dirs store.Dirs, docs resource.Documents) error {
	var errs []error
	exists := func(kind, name string) {
		errs = append(errs, report.New(report.Failure, "podrun apply -f FILE changes it", "%s %q already exists", kind, name))
	}
	for i := range docs.Pods {
		if p := docs.Pods[i].Pod; dirs.Pod(p.Namespace, p.Name).HasRemains() {
			exists("pod", p.Name)
		}
	}
	for _, list := range [][]manifest.Object{docs.Stored, docs.Workloads} {
		for i := range list {
			o := list[i].Stored
			if _, err := dirs.Object(o.Kind, o.Namespace, o.Name); err == nil {
				exists(kindnames.Of(o.Kind), o.Name)
			} else if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
