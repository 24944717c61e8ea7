package object

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

func createDeploymentCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "deployment", Aliases: []string{"deploy"},
		Usage:     "create a Deployment",
		ArgsUsage: "NAME --image=IMAGE [-- COMMAND ARG...]",
		Description: `Creates a Deployment whose pods have the label app=NAME and a container for each
image, named after it, and returns.

Examples:
  podrun create deployment web --image=nginx --replicas=2 --port=80
  podrun create deployment idle --image=busybox -- sleep infinity
  podrun create deployment web --image=nginx --dry-run=client -o yaml
`,
		Flags: createFlags(
			&cli.StringSliceFlag{Name: "image", Usage: "run a container of this `IMAGE`"},
			&cli.IntFlag{Name: "replicas", Aliases: []string{"r"}, Value: 1, Usage: "the `NUMBER` of pods"},
			&cli.IntFlag{Name: "port", Usage: "the `PORT` of the first container"},
		),
		Action: createAction(env, "Deployment", (*createOptions).deployment),
	}
}

func createJobCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "job",
		Usage:     "create a Job",
		ArgsUsage: "NAME [-- COMMAND ARG...]",
		Description: `Creates a Job that runs an image or a command in it once, or the Job that a
CronJob would start now, and returns.

Examples:
  podrun create job hello --image=busybox -- echo hello
  podrun create job backup-now --from=cronjob/backup
`,
		Flags: createFlags(
			&cli.StringSliceFlag{Name: "image", Usage: "run a container of this `IMAGE`"},
			&cli.StringFlag{Name: "from", Usage: "use the template of a CronJob: cronjob/`NAME`"},
		),
		Action: createAction(env, "Job", (*createOptions).job),
	}
}

// deployment returns a Deployment in the form of kubectl create deployment.
func (o *createOptions) deployment() (metav1.Object, error) {
	switch {
	case len(o.images) == 0:
		return nil, cmdutil.UsageErrorf("create deployment", "create deployment requires --image")
	case len(o.images) > 1 && len(o.command) > 0:
		return nil, cmdutil.UsageErrorf("create deployment", "cannot specify multiple --image options and command")
	case o.replicas < 0:
		return nil, cmdutil.UsageErrorf("create deployment", "--replicas must not be negative")
	case o.replicas > math.MaxInt32:
		return nil, cmdutil.UsageErrorf("create deployment", "--replicas must not be greater than %d", math.MaxInt32)
	case o.port < 0 || o.port > math.MaxUint16:
		return nil, cmdutil.UsageErrorf("create deployment", "--port must be between 1 and %d", math.MaxUint16)
	}
	labels := map[string]string{"app": o.words[0]}
	n := int32(o.replicas)
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	d.Spec.Replicas, d.Spec.Selector = &n, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	for _, ref := range o.images {
		if err := checkImage(ref); err != nil {
			return nil, err
		}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: containerName(ref), Image: ref, Command: o.command})
	}
	if o.port != 0 {
		d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: int32(o.port)}}
	}
	return d, nil
}

func checkImage(ref string) error {
	if err := image.ValidateName(ref); err != nil {
		return report.New(report.Usage, "", "cannot use image %s: %w", ref, err)
	}
	return nil
}

// containerName returns the name of a container of an image: the last part of the image's name, as in kubectl.
func containerName(ref string) string {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	if i := strings.IndexAny(name, ":@"); i >= 0 {
		name = name[:i]
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(name)
}

// job returns a Job in the form of kubectl create job.
func (o *createOptions) job() (metav1.Object, error) {
	switch {
	case (len(o.images) == 0) == (o.from == ""):
		return nil, cmdutil.UsageErrorf("create job", "either --image or --from must be specified")
	case len(o.images) > 1:
		return nil, cmdutil.UsageErrorf("create job", "create job requires one --image")
	case o.from != "" && len(o.command) > 0:
		return nil, cmdutil.UsageErrorf("create job", "cannot specify --from and command")
	case o.from != "":
		return o.jobFrom()
	}
	if err := checkImage(o.images[0]); err != nil {
		return nil, err
	}
	j := &batchv1.Job{}
	j.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: o.words[0], Image: o.images[0], Command: o.command}},
	}
	j.TypeMeta = jobType()
	return j, nil
}

func jobType() metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"} }

// jobFrom returns the Job that the CronJob of --from would start now.
func (o *createOptions) jobFrom() (metav1.Object, error) {
	kind, names, ok := kindnames.ParseObjects([]string{o.from})
	if !ok || kind != pod.KindCronJob || len(names) != 1 {
		return nil, cmdutil.UsageErrorf("create job", "--from must be cronjob/NAME, not %q", o.from)
	}
	dirs, err := o.env.Dirs()
	if err != nil {
		return nil, err
	}
	if o.cron, err = resource.FindObject(dirs, kind, cmp.Or(o.namespace, podclient.DefaultNamespace), names[0]); err != nil {
		return nil, err
	}
	job, err := workloads.NewManualJob(o.cron, o.words[0])
	if err != nil {
		return nil, err
	}
	job.TypeMeta = jobType()
	return job, nil
}

// workloadsOf returns the object as a list, if it is a workload.
func workloadsOf(o *manifest.Object) []manifest.Object {
	if o.IsWorkload() {
		return []manifest.Object{*o}
	}
	return nil
}

// startController ensures that a controller runs the workload. The controller of a CronJob, which also runs
// its Jobs, wakes when the CronJob is stored again.
func (o *createOptions) startController(made *pod.Object) error {
	if !kindnames.IsWorkload(made.Kind) {
		return nil
	}
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	kind, name := made.Kind, made.Name
	if made.Owner != nil {
		lock, err := dirs.LockObjects()
		if err != nil {
			return fmt.Errorf("cannot start %s: %w", kindnames.Display(made), err)
		}
		defer lock.Close()
		cron, err := resource.FindObject(dirs, made.Owner.Kind, made.Namespace, made.Owner.Name)
		if err == nil {
			err = dirs.PutObject(cron)
		}
		if err != nil {
			return err
		}
		kind, name = cron.Kind, cron.Name
	}
	w, err := dirs.Workload(kind, made.Namespace, name)
	if err != nil {
		return err
	}
	return controller.EnsureRunning(o.env, dirs, w)
}
