package podaction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewDownCommand returns the command down.
func NewDownCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop and remove pods and workloads",
		ArgsUsage: "POD... | KIND/NAME... | -l SELECTOR | --all | -f FILE",
		Description: `Stops pods gracefully (stop signal, grace period, SIGKILL) and removes them with
their volumes, root file systems and logs. Claims stay, unless --volumes is
given. It also removes the remains of pods that were killed, or that ran before
a reboot. A Deployment, Job or another workload is removed with its pods; if
only one of its pods is removed, it creates another. With -f the Services,
ConfigMaps, Secrets and empty Namespaces of the file are removed after the pods;
--keep-objects keeps them. What the file has and does not exist is no error.

The removal is completed even if this command is killed meanwhile.

Examples:
  podrun down web
  podrun down -f web.yaml
  podrun down web --grace-period 5
  podrun down web --force
  podrun down deployment/web job/hello
  podrun down -l app=web
  podrun down --all -n test
`,
		Flags: append([]cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "remove the pods of this `FILE` (- is standard input)"},
			cmdutil.PathFlag(),
			cmdutil.EnvFileFlag(),
			&cli.BoolFlag{Name: "keep-objects", Usage: "with -f: remove the pods, and keep the services, configmaps and secrets of the file"},
			&cli.BoolFlag{Name: "volumes", Usage: "also delete the claims of the pods, with their files"},
		}, append(resource.SelectionFlags("the pods and workloads"), graceFlags()...)...),
		Action: cmdutil.Action(func() cmdutil.Command { return &downOptions{podOptions: podOptions{env: env}} }),
	}
}

type downOptions struct {
	podOptions
	graceOptions
	files                []string
	keepObjects, volumes bool
}

func (o *downOptions) Complete(c *cli.Context) error {
	o.graceOptions.complete(c)
	o.files, o.keepObjects, o.volumes = c.StringSlice("filename"), c.Bool("keep-objects"), c.Bool("volumes")
	o.env.ArtifactPath, o.env.EnvFiles = c.String("path"), c.StringSlice("env-file")
	return o.podOptions.Complete(c)
}

func (o *downOptions) Validate() error {
	switch {
	case len(o.files) > 0 && len(o.words) > 0:
		return cmdutil.UsageErrorf("down", "down requires either names or -f, not both")
	case o.chosen == nil && len(o.files)+len(o.words) == 0:
		return cmdutil.UsageErrorf("down", "down requires the names of pods, --selector or --all, or -f and a file")
	}
	return o.graceOptions.validate()
}

func (o *downOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	afterPods, claims, err := o.inFiles()
	if err != nil {
		return err // targets would report it again
	}
	workloads, pods, missing := o.targets()
	if errors.Is(missing, resource.ErrOtherProject) { // so are the objects
		return missing
	}
	o.warnOfUnits(pods)
	if o.volumes {
		if claims = claimsOf(pods, claims); len(workloads) > 0 {
			return cmdutil.UsageErrorf("down", "--volumes applies to pods only: podrun volume rm removes the claims of a workload")
		}
	}
	if err = o.remove(ctx, workloads, pods); err == nil { // otherwise pods may still need the objects
		err = objects.DeleteWithPods(ctx, o.env, o.dirs, afterPods)
	}
	return errors.Join(err, missing, objects.RemoveFreeVolumes(o.env, o.dirs, claims))
}

// inFiles returns the objects of the files that are removed after the pods, and with --volumes the existing claims,
// whose pods may be gone.
func (o *downOptions) inFiles() (afterPods []kindnames.ObjectRef, claims []objects.ClaimRef, err error) {
	if len(o.files) == 0 {
		return nil, nil, nil
	}
	if afterPods, err = resource.ObjectsInFiles(o.env, o.files); err != nil {
		return nil, nil, err
	}
	if o.volumes {
		afterPods = slices.DeleteFunc(afterPods, func(t kindnames.ObjectRef) bool { return t.Kind == pod.KindClaim })
		if claims, err = o.existingClaims(); err != nil {
			return nil, nil, err
		}
	}
	if o.keepObjects {
		afterPods = nil
	}
	return afterPods, claims, nil
}

// existingClaims returns the claims of the files that exist.
func (o *downOptions) existingClaims() ([]objects.ClaimRef, error) {
	named, err := resource.ClaimsInFiles(o.env, o.files)
	if err != nil {
		return nil, err
	}
	all, err := objects.ListVolumes(o.dirs)
	var claims []objects.ClaimRef
	for _, c := range named {
		claim := objects.ClaimRef{Namespace: c.Namespace, Name: c.Name}
		if _, err := objects.FindVolume(all, claim); err == nil {
			claims = append(claims, claim)
		}
	}
	return claims, err
}

// targets returns the existing workloads and pods that the user named or selected, and an error about the
// others. As with kubectl delete, missing ones do not prevent the removal of the others. Objects of a file may be gone,
// as with docker compose.
func (o *downOptions) targets() ([]store.Workload, []store.Pod, error) {
	if o.chosen != nil {
		workloads, pods, err := o.chosen.WorkloadsAndPods(o.dirs)
		if len(workloads)+len(pods) == 0 && err == nil {
			o.chosen.ReportEmpty(o.env)
		}
		return workloads, pods, err
	}
	var workloads []store.Workload
	var found, pods []store.Pod
	var err error
	if len(o.files) > 0 {
		var perr error
		var missing []string
		workloads, missing, err = resource.WorkloadsInFiles(o.env, o.dirs, o.files)
		for _, name := range missing {
			fmt.Fprintf(o.env.ErrOut, "podrun: %s does not exist\n", name)
		}
		found, perr = resource.PodsInFiles(o.env, o.dirs, o.files)
		err = errors.Join(err, perr)
	} else {
		var words []string
		workloads, words, err = resource.SplitWorkloads(o.dirs, o.namespace, o.words)
		for _, word := range words {
			p, perr := resource.ResolvePod(o.dirs, o.namespace, word)
			if perr != nil {
				err = errors.Join(err, perr)
				continue
			}
			found = append(found, p)
		}
	}
	for _, p := range resource.UniquePods(found) {
		switch {
		case p.HasRemains() || resource.HasReplacement(o.dirs, p) || len(podinit.StraysOf(o.dirs, p)) > 0:
			pods = append(pods, p)
		case len(o.files) > 0:
			fmt.Fprintf(o.env.ErrOut, "podrun: pod/%s does not exist\n", p.Name)
		default:
			err = errors.Join(err, resource.PodNotFound(o.dirs, p))
		}
	}
	return workloads, pods, err
}

// remove removes workloads and pods.
func (o *downOptions) remove(ctx context.Context, workloads []store.Workload, pods []store.Pod) error {
	if len(workloads)+len(pods) == 0 {
		return nil
	}
	return controller.RemoveAll(ctx, o.env, o.dirs, workloads, pods, o.how(o.env))
}

// warnOfUnits warns about pods that systemd would start again, and prints how to stop their units.
func (o *podOptions) warnOfUnits(pods []store.Pod) {
	for _, p := range pods {
		switch unit, err := o.dirs.UnitOf(p); {
		case err != nil:
			report.Print(o.env.ErrOut, err)
		case unit != "":
			systemctl := "systemctl --user"
			if os.Geteuid() == 0 {
				systemctl = "systemctl"
			}
			fmt.Fprintf(o.env.ErrOut, "podrun: pod %s belongs to %s, which may start it again; %s stop %s stops both\n", p.Name, unit, systemctl, unit)
		}
	}
}

// claimsOf adds the claims of pods to a list.
func claimsOf(pods []store.Pod, list []objects.ClaimRef) []objects.ClaimRef {
	for _, p := range pods {
		plan, err := p.Plan()
		if err != nil {
			continue // incomplete, or partly removed: volume ls lists its claims
		}
		if plan.InCluster() {
			continue // they are the cluster's
		}
		for _, v := range plan.Volumes {
			if c := (objects.ClaimRef{Namespace: p.Namespace, Name: v.Claim}); v.Kind == pod.ClaimVolume && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}
