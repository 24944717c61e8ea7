// Package run has the command run, which makes a Pod from a command line like docker run's.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// NewCommand returns the command run.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run one container, with the options of docker run",
		ArgsUsage: "IMAGE [COMMAND [ARG...]] | IMAGE -- COMMAND [ARG...]",
		Description: `Makes a Pod with one container and runs it. Options stand before the image; what
follows the image is the command. In the foreground podrun prints the output
unchanged and ends with the container's exit code: 127 if its command was not
found, 126 if it cannot be executed, 125 if podrun itself failed. Signals are
passed to the container; a second SIGINT or SIGTERM kills it. With -it the
container has a terminal, and ctrl-p ctrl-q detaches. With -d podrun prints the
name of the pod and returns. An ended pod stays, as a stopped container does,
unless --rm is set: podrun logs NAME, podrun down NAME.

A host directory that is missing is created. A volume that has a name is the
PersistentVolumeClaim of that name: podrun creates it if it is missing, and
keeps it when the pod is removed. With --dry-run=client -o yaml podrun prints
the Pod, for podrun up.

Examples:
  podrun run -it --rm alpine
  podrun run -d --name web -p 8080:80 -v ./site:/usr/share/nginx/html:ro nginx
  podrun run --rm -e LANG=C --memory 512m --cpus 1.5 busybox env
  podrun run --rm --gpus all cuda nvidia-smi
  tar c . | podrun run -i --rm busybox tar t
  podrun run --dry-run=client -o yaml -p 8080:80 nginx >web.yaml
`,
		Flags: append(containerFlags(),
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when the container runs, and print the pod's name"},
			&cli.BoolFlag{Name: "interactive", Aliases: []string{"i"}, Usage: "pass on standard input"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give the container a terminal"},
			&cli.BoolFlag{Name: "rm", Usage: "remove the pod when it has ended"},
			&cli.BoolFlag{Name: "publish-all", Aliases: []string{"P"}, Usage: "forward a free port of this machine to each port that the image exposes"},
			&cli.StringFlag{Name: "name", Usage: "the `NAME` of the pod (the image's name and five random characters if not given)"},
			cmdutil.TLSVerifyFlag(),
			cmdutil.DryRunFlag("create nothing: with =client only print what would be created"),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "with --dry-run=client: print the Pod in this `FORMAT`, yaml or json"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of run.
type options struct {
	env             *cmdutil.Env
	namespace, name string
	image           string
	command         []string
	detach, rm      bool
	stdin, tty      bool
	publishAll      bool
	settings        []setting // the options of the container
	restart         string
	registry        image.PullOptions
	dryRun          cmdutil.DryRun
	format          string
}

// setting is an option of the container, with a value.
type setting struct{ option, value string }

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	words := c.Args().Slice()
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) > 0 {
		o.image, o.command = words[0], words[1:]
	}
	if len(o.command) > 0 && o.command[0] == "--" {
		o.command = o.command[1:]
	}
	o.namespace, o.name = c.String("namespace"), c.String("name")
	o.detach, o.rm, o.stdin, o.tty = c.Bool("detach"), c.Bool("rm"), c.Bool("interactive"), c.Bool("tty")
	o.publishAll, o.restart, o.registry = c.Bool("publish-all"), c.String("restart"), o.env.RegistryOptions(c)
	for _, f := range containerFlags() {
		name := f.Names()[0]
		switch f.(type) {
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				o.settings = append(o.settings, setting{name, value})
			}
		case *cli.BoolFlag:
			if c.Bool(name) {
				o.settings = append(o.settings, setting{name, "true"})
			}
		default:
			if c.IsSet(name) {
				o.settings = append(o.settings, setting{name, c.String(name)})
			}
		}
	}
	o.dryRun, o.format = cmdutil.DryRunOf(c), c.String("output")
	return nil
}

// Validate checks how the options fit together. The options that become fields of the Pod are checked when it
// is made.
func (o *options) Validate() error {
	switch {
	case o.image == "":
		return usageErrorf("run requires the name of an image")
	case o.rm && o.restart != "" && o.restart != "no":
		return usageErrorf("--rm and --restart are mutually exclusive: a pod that is restarted does not end")
	case o.dryRun == cmdutil.DryRunServer:
		return report.New(report.Usage, "podrun run --dry-run=client -o yaml IMAGE | podrun up --dry-run=server -", "run has no --dry-run=server")
	case o.format != "" && o.dryRun == cmdutil.DryRunNone:
		return usageErrorf("-o requires --dry-run=client")
	case o.format != "" && o.format != "json" && o.format != "yaml":
		return usageErrorf("unknown output format %q: use json or yaml", o.format)
	}
	return nil
}

func usageErrorf(format string, args ...any) error {
	return cmdutil.UsageErrorf("run", format, args...)
}

// Run makes the Pod and runs it, or prints it.
func (o *options) Run(ctx context.Context) error { return exitcode.InContainer(o.run(ctx)) }

func (o *options) run(ctx context.Context) error {
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer stop()
	if o.env.Compose.Pod != "" {
		docs, err := o.servicePod()
		if err != nil {
			return err
		}
		return o.start(ctx, docs, signals)
	}
	if o.publishAll {
		if err := cmdutil.Interruptible(ctx, signals, o.publishExposed); err != nil {
			return err
		}
	}
	p, err := o.newPod()
	if err != nil {
		return err
	}
	loaded, err := load(p.Pod, o.namespace)
	if err != nil {
		return err
	}
	if o.dryRun != cmdutil.DryRunNone {
		return o.print(p.Pod, p.Claims)
	}
	if _, terminal := tty.File(o.env.In); o.tty && o.stdin && !o.detach && !terminal {
		return report.New(report.Usage, "omit -t: podrun run -i", "the input device is not a TTY")
	}
	docs := resource.Documents{Pods: loaded}
	if docs.Stored, err = o.missingClaims(p.Claims); err != nil {
		return err
	}
	return o.start(ctx, docs, signals)
}

// start runs the only pod of docs.
func (o *options) start(ctx context.Context, docs resource.Documents, signals <-chan os.Signal) error {
	preparation := o.env.StartPreparation()
	defer preparation.End()
	r, err := podup.New(ctx, o.env, preparation, docs, podup.Options{RemoveAtEnd: o.rm && o.detach, Pull: o.registry})
	if err != nil {
		return err
	}
	defer r.Release()
	r.ReportTo = io.Discard
	target := r.Targets[0]
	if err := refuseExisting(target); err != nil {
		return err
	}
	if err := cmdutil.Interruptible(ctx, signals, r.Prepare); err != nil {
		return invalid(err)
	}
	if err := refuseExisting(target); err != nil { // the pull may have taken long
		return err
	}
	if err := r.StartInOrder(ctx, signals); err != nil {
		return err
	}
	preparation.RestoreGC()
	a := &attachment{options: o, run: r, target: target, container: &target.Plan.Containers[0], signals: signals, stopped: make(chan os.Signal, 1)}
	if o.detach {
		return a.awaitStart(ctx)
	}
	return a.foreground(ctx)
}

// refuseExisting returns an error if there is a pod of that name.
func refuseExisting(t *podup.Target) error {
	if t.Pod.HasRemains() {
		return report.New(report.Failure, "podrun down "+t.Pod.Name+" removes it; or choose another --name", "a pod with the name %s exists already", t.Pod.Name)
	}
	return nil
}

// load fills in the Pod's defaults and validates it, as a manifest.
func load(p *corev1.Pod, namespace string) ([]manifest.Object, error) {
	text, err := manifest.Marshal(p)
	if err != nil {
		return nil, err
	}
	loaded, err := manifest.LoadInNamespace("podrun run", text, namespace, nil)
	if err != nil {
		return nil, invalid(err)
	}
	return loaded, image.ValidateName(p.Spec.Containers[0].Image)
}

// invalid returns the error of an invalid Pod. It names no document, because the Pod comes from options.
func invalid(err error) error {
	var in *manifest.Errors
	if !errors.As(err, &in) {
		return err
	}
	var list []error
	for _, e := range in.List {
		list = append(list, report.New(report.Usage, "podrun run --help", "cannot run the Pod of these options: %s: %s", e.Field, e.Message))
	}
	return errors.Join(list...)
}

// missingClaims returns the claims that do not exist yet.
func (o *options) missingClaims(claims []*corev1.PersistentVolumeClaim) (list []manifest.Object, err error) {
	dirs, err := o.env.Dirs()
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		_, err := dirs.Object(pod.KindClaim, o.namespace, c.Name)
		if !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return nil, err
			}
			continue
		}
		text, err := printers.PrintList([]any{c}, true, printers.JSON)
		if err != nil {
			return nil, err
		}
		loaded, err := manifest.LoadInNamespace("podrun run", text, o.namespace, nil)
		if err != nil {
			return nil, invalid(err)
		}
		list = append(list, loaded...)
	}
	return list, nil
}

// print prints what would be created.
func (o *options) print(p *corev1.Pod, claims []*corev1.PersistentVolumeClaim) error {
	if o.format == "" {
		_, err := fmt.Fprintf(o.env.Out, "pod/%s created%s\n", p.Name, o.dryRun.Suffix())
		return err
	}
	var items []any
	for _, c := range claims {
		items = append(items, c)
	}
	items = append(items, p)
	if o.format == "json" {
		text, err := printers.PrintList(items, true, printers.JSON)
		return errors.Join(err, o.env.WriteSafe(text))
	}
	for i, item := range items {
		text, err := printers.PrintList([]any{item}, true, printers.YAML)
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if err := errors.Join(err, o.env.WriteSafe(text)); err != nil {
			return err
		}
	}
	return nil
}
