package stop

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/cli/internal/podstop"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// NewDownCommand returns the command down.
func NewDownCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop and remove pods, and what makes them",
		ArgsUsage: "POD... | KIND/NAME... | -l SELECTOR | --all | -f FILE",
		Description: `Stops pods gracefully (stop signal, grace period, SIGKILL) and removes them with
their volumes, root file systems and logs. Claims stay, without --volumes. It
also removes what is left of a pod that was killed, or that was there before a
reboot. A deployment, job or the like is removed with its pods; if you remove
only one of its pods, it makes another. With -f it then removes the services,
configmaps, secrets and empty namespaces of the file, too; --keep-objects
leaves them.

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
			&cli.BoolFlag{Name: "keep-objects", Usage: "with -f: remove the pods, and leave the services, configmaps and secrets of the file"},
			&cli.BoolFlag{Name: "volumes", Usage: "delete the claims of the pods, too, with what is in them"},
		}, append(resource.SelectionFlags("the pods and workloads"), stopFlags()...)...),
		Action: func(c *cli.Context) error { return runDown(env, c) },
	}
}

func runDown(env *cmdutil.Env, c *cli.Context) error {
	how, err := stopOptionsOf(c)
	if err != nil {
		return err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	if len(c.StringSlice("filename")) > 0 && c.Args().Present() {
		return cmdutil.UsageErrorf("down", "down takes either names or -f, not both")
	}
	chosen, err := resource.SelectionOf(c, c.Args().Present() || len(c.StringSlice("filename")) > 0)
	if err != nil {
		return err
	}
	workloads, places, missing := downChosen(env, c, dirs, chosen)
	kept, kerr := downObjects(env, c)
	if kerr != nil {
		return errors.Join(missing, kerr)
	}
	if len(places)+len(workloads) == 0 {
		return errors.Join(missing, objects.DeleteWithPods(c.Context, env, dirs, kept))
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	warnOfUnits(env, dirs, places)
	var claims []objects.ClaimRef
	if c.Bool("volumes") {
		if claims = claimsOf(places); len(workloads) > 0 {
			return cmdutil.UsageErrorf("down", "--volumes is for pods: podrun volume rm removes the claims of a workload")
		}
	}
	errs := make([]error, len(places))
	gone := make([]error, len(workloads))
	var all sync.WaitGroup
	for i, w := range workloads {
		all.Go(func() { gone[i] = controller.RemoveWorkload(c.Context, env, dirs, launcher, w, how) })
	}
	for i, p := range places {
		all.Go(func() {
			if errs[i] = dirs.RemoveReplacement(p); errs[i] == nil {
				errs[i] = podstop.StopAndRemoveVerbose(c.Context, env.ErrOut, launcher.Remove, p, how)
			}
		})
	}
	all.Wait()
	for i, w := range workloads {
		if gone[i] == nil {
			fmt.Fprintf(env.Out, "%s/%s deleted\n", kindnames.Of(w.Kind), w.Name)
		}
	}
	for i, p := range places {
		if errs[i] == nil {
			errs[i] = dirs.RemoveUpdate(p)
		}
		if errs[i] == nil {
			fmt.Fprintf(env.Out, "pod/%s deleted\n", p.Name)
		}
	}
	failed := errors.Join(slices.Concat(gone, errs)...)
	if failed == nil { // otherwise pods may still need them
		failed = objects.DeleteWithPods(c.Context, env, dirs, kept)
	}
	return errors.Join(failed, missing, removeFreeVolumes(env, dirs, claims))
}

// downChosen returns the existing workloads and pods that the user named or selected, and an error about
// the others.
func downChosen(env *cmdutil.Env, c *cli.Context, dirs store.Dirs, s *resource.Selection) ([]store.Workload, []store.Pod, error) {
	if s != nil {
		workloads, places, err := s.WorkloadsAndPods(dirs)
		if len(workloads)+len(places) == 0 && err == nil {
			s.ReportEmpty(env)
		}
		return workloads, places, err
	}
	workloads, words, missing := downWorkloads(env, c, dirs)
	if len(words)+len(c.StringSlice("filename")) == 0 && c.Args().Present() {
		return workloads, nil, missing
	}
	places, lacking := downPlaces(env, c, dirs, words)
	return workloads, places, errors.Join(missing, lacking)
}

// downObjects returns the objects to remove after the pods: those of the files, unless the user keeps
// them.
func downObjects(env *cmdutil.Env, c *cli.Context) ([]kindnames.ObjectRef, error) {
	files := c.StringSlice("filename")
	if len(files) == 0 || c.Bool("keep-objects") {
		return nil, nil
	}
	return resource.ObjectsInFiles(env, files)
}

// downWorkloads returns the workloads that the user named, and the words that name pods.
func downWorkloads(env *cmdutil.Env, c *cli.Context, dirs store.Dirs) ([]store.Workload, []string, error) {
	if files := c.StringSlice("filename"); len(files) > 0 {
		list, err := resource.WorkloadsInFiles(env, dirs, files)
		return list, c.Args().Slice(), err
	}
	return resource.SplitWorkloads(dirs, c.String("namespace"), c.Args().Slice())
}

// downPlaces returns the existing pods that the user named, and an error about the others. As with
// kubectl delete, missing pods do not prevent the removal of the others.
func downPlaces(env *cmdutil.Env, c *cli.Context, dirs store.Dirs, words []string) ([]store.Pod, error) {
	files := c.StringSlice("filename")
	switch {
	case len(files) == 0 && !c.Args().Present():
		return nil, cmdutil.UsageErrorf("down", "down takes the names of pods, --selector or --all, or -f and a file")
	}
	var places []store.Pod
	var errs []error
	add := func(p store.Pod, err error) {
		if err == nil && !p.HasRemains() && !resource.HasReplacement(dirs, p) {
			err = resource.PodNotFound(dirs, p)
		}
		if err != nil {
			errs = append(errs, err)
			return
		}
		places = append(places, p)
	}
	for _, word := range words {
		add(resource.ResolvePod(dirs, c.String("namespace"), word))
	}
	if len(files) > 0 {
		found, err := resource.PodsInFiles(env, dirs, files)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			add(p, nil)
		}
	}
	return resource.UniquePods(places), errors.Join(errs...)
}

// warnOfUnits warns about pods that systemd would start again, and prints how to stop their units.
func warnOfUnits(env *cmdutil.Env, dirs store.Dirs, places []store.Pod) {
	for _, p := range places {
		switch unit, err := dirs.UnitOf(p); {
		case err != nil:
			report.Print(env.ErrOut, err)
		case unit != "":
			systemctl := "systemctl --user"
			if os.Geteuid() == 0 {
				systemctl = "systemctl"
			}
			fmt.Fprintf(env.ErrOut, "podrun: pod %s belongs to %s, which may start it again; %s stop %s ends both\n", p.Name, unit, systemctl, unit)
		}
	}
}

// claimsOf returns the claims of pods.
func claimsOf(places []store.Pod) []objects.ClaimRef {
	var list []objects.ClaimRef
	for _, p := range places {
		plan, err := p.Plan()
		if err != nil {
			continue // incomplete, or partly removed: volume ls lists its claims
		}
		for _, v := range plan.Volumes {
			if c := (objects.ClaimRef{Namespace: p.Namespace, Name: v.Claim}); v.Kind == pod.ClaimVolume && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// removeFreeVolumes implements down --volumes: it keeps claims that other pods use.
func removeFreeVolumes(env *cmdutil.Env, dirs store.Dirs, claims []objects.ClaimRef) error {
	var free []objects.ClaimRef
	for _, c := range claims {
		users, err := dirs.ClaimUsers(c.Namespace, c.Name)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			fmt.Fprintf(env.ErrOut, "podrun: persistentvolumeclaim/%s is kept: pod %s has it\n", c.Name, users[0].Name)
			continue
		}
		free = append(free, c)
	}
	if len(free) == 0 {
		return nil
	}
	return objects.RemoveVolumes(env, dirs, free)
}
