package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewDebugCommand returns the command debug.
func NewDebugCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "debug",
		Usage:     "add a container to a running pod, to debug it",
		ArgsUsage: "POD [-- COMMAND [ARG...]]",
		Description: `Adds an ephemeral container to a running pod: with an image of its own, in the
pod's network, and with --target in the PID namespace of one of its containers.
It starts at once and is never restarted; nothing waits for it, and it ends with
the pod. With -i podrun attaches to it, as podrun attach -i does, and shows all
of its output from the first byte on. Without --image it has the image of the
target, or of the first container.

Examples:
  podrun debug -it web --image busybox
  podrun debug -it web --image busybox --target server -- sh
  podrun debug web --image tools -- tcpdump -i eth0
  podrun debug -it web --image busybox --custom mounts.yaml
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "image", Usage: "the `IMAGE` of the container"},
			&cli.StringFlag{Name: "image-pull-policy", Usage: "`POLICY`: Always, IfNotPresent or Never"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "the `NAME` of the container; debugger-XXXXX if not given"},
			&cli.StringFlag{Name: "target", Usage: "share the processes of this `CONTAINER`"},
			&cli.StringSliceFlag{Name: "env", Usage: "set a variable, `NAME=VALUE`"},
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "keep its standard input open, and attach to it"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give it a terminal"},
			&cli.BoolFlag{Name: "attach", Usage: "attach to it, as -i does unless --attach=false"},
			&cli.BoolFlag{Name: "arguments-only", Usage: "arguments after -- are for the image's own command"},
			&cli.StringFlag{Name: "profile", Value: "general", Usage: "its capabilities, by kubectl's `PROFILES`: general, baseline, restricted, netadmin or sysadmin"},
			&cli.StringFlag{Name: "custom", Usage: "merge this `FILE`, a part of a container's spec as JSON or YAML, into the container"},
			&cli.StringFlag{Name: "copy-to", Usage: "refused: podrun does not copy a pod to `POD`"},
			cmdutil.ResultFormatFlag(),
			detachFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but the output of the container"},
		},
		Action: cmdutil.Action(printers.WithResult(env, func(env *cmdutil.Env) cmdutil.Command { return &debugOptions{env: env} })),
	}
}

// debugOptions are the options of debug; it adds one ephemeral container to a pod.
type debugOptions struct {
	env                     *cmdutil.Env
	namespace               string
	words                   []string // POD [-- COMMAND]
	image, pull, name       string
	target, profile, custom string
	variables               []string // NAME=VALUE
	stdin, tty, quiet       bool
	attaches, argumentsOnly bool
	copyTo                  bool
	detachKeys              string
	keys                    []byte // detachKeys, parsed

	dirs      store.Dirs
	pod       store.Pod
	stored    *corev1.Pod
	plan      *pod.Plan
	container *corev1.EphemeralContainer
}

func (d *debugOptions) Complete(c *cli.Context) error {
	d.namespace, d.words = c.String("namespace"), c.Args().Slice()
	d.image, d.pull, d.name = c.String("image"), c.String("image-pull-policy"), c.String("container")
	d.target, d.profile, d.custom = c.String("target"), c.String("profile"), c.String("custom")
	d.variables, d.argumentsOnly, d.copyTo = c.StringSlice("env"), c.Bool("arguments-only"), c.IsSet("copy-to")
	d.stdin, d.tty, d.quiet, d.detachKeys = c.Bool("stdin"), c.Bool("tty"), c.Bool("quiet"), c.String("detach-keys")
	d.attaches = c.Bool("attach") || d.stdin && !c.IsSet("attach")
	return nil
}

func (d *debugOptions) Validate() (err error) {
	switch {
	case d.copyTo:
		return cmdutil.UsageErrorf("debug", "--copy-to: podrun does not copy pods; edit the output of podrun get pod NAME -o yaml instead")
	case len(d.words) == 0 || d.words[0] == "--" || len(d.words) > 1 && d.words[1] != "--":
		return cmdutil.UsageErrorf("debug", "debug requires the name of one pod; a command follows after --")
	}
	d.keys, err = parseDetachKeys("debug", d.detachKeys)
	return err
}

func (d *debugOptions) Run(ctx context.Context) (err error) {
	if d.dirs, err = d.env.Dirs(); err != nil {
		return err
	}
	if d.pod, err = resource.FindPod(d.env, d.dirs, d.namespace, d.words[0]); err != nil {
		return err
	}
	if err := d.make(); err != nil {
		return err
	}
	d.env.Changed = &cmdutil.ChangedObjects{Dirs: d.dirs, Names: []kindnames.Query{{Kind: "", Names: []string{d.pod.Name}, Namespace: d.pod.Namespace}}}
	if err := d.add(ctx); err != nil {
		return err
	}
	if !d.attaches {
		fmt.Fprintf(d.env.Out, "pod/%s: container %s added\n", d.pod.Name, d.container.Name)
		return nil
	}
	return d.attach(ctx)
}

// make builds the container as kubectl debug does.
func (d *debugOptions) make() error {
	text, err := d.pod.Manifest()
	if err != nil {
		return err
	}
	if d.stored, err = manifest.Unmarshal(text); err != nil {
		return fmt.Errorf("read manifest of pod %s: %w", d.pod.Name, err)
	}
	if d.plan, err = d.pod.Plan(); err != nil {
		return err
	}
	name := d.name
	if name == "" {
		name = "debugger-" + cmdutil.RandomSuffix()
		if !d.quiet {
			fmt.Fprintf(d.env.ErrOut, "Defaulting debug container name to %s.\n", name)
		}
	}
	image, pull := d.image, corev1.PullPolicy(d.pull)
	if image == "" {
		pull = cmp.Or(pull, corev1.PullIfNotPresent) // the image is present
		image = d.stored.Spec.Containers[0].Image
		for _, o := range d.stored.Spec.Containers {
			if o.Name == d.target {
				image = o.Image
			}
		}
	}
	var command []string
	if len(d.words) > 2 {
		command = d.words[2:]
	}
	security, err := d.securityContext(name)
	if err != nil {
		return err
	}
	d.container = &corev1.EphemeralContainer{
		TargetContainerName: d.target,
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, Image: image, ImagePullPolicy: pull, Command: command,
			// The end of the local input ends the container's input, as with kubectl run -i.
			Stdin: d.stdin, StdinOnce: d.stdin, TTY: d.tty, SecurityContext: security,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		},
	}
	if d.argumentsOnly {
		d.container.Args, d.container.Command = command, nil
	}
	for _, word := range d.variables {
		name, value, is := strings.Cut(word, "=")
		if !is || name == "" {
			return cmdutil.UsageErrorf("debug", "--env: %q is not NAME=VALUE", word)
		}
		d.container.Env = append(d.container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return d.customize(d.custom)
}

// securityContext returns the security context of the profile. It omits CAP_SYS_PTRACE if the pod has no user namespace of its own:
// there, a process with that capability can trace libcontainer's init, which is visible in the container
// before it is confined, and become the user on the host.
func (d *debugOptions) securityContext(container string) (*corev1.SecurityContext, error) {
	security, err := profile(d.profile)
	root := os.Geteuid() == 0
	if err != nil || d.profile != "general" || d.plan.OwnUserNS && !root {
		return security, err
	}
	reason := fmt.Sprintf("pod %s shares its user namespace with other pods; if a container of its manifest adds SYS_PTRACE, the pod has a user namespace of its own", d.pod.Name)
	if root {
		reason = "root's pods use the host's user namespace; with --profile=sysadmin the container is root of the host"
	}
	if !d.quiet {
		fmt.Fprintf(d.env.ErrOut, "warning: container %s does not get SYS_PTRACE: %s\n", container, reason)
	}
	return nil, nil
}

// profile returns the security context that kubectl debug gives the container
// (pkg/cmd/debug/profiles.go).
func profile(name string) (*corev1.SecurityContext, error) {
	add := func(list ...corev1.Capability) *corev1.SecurityContext {
		return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: list}}
	}
	switch name {
	case "general":
		return add("SYS_PTRACE"), nil
	case "netadmin":
		return add("NET_ADMIN", "NET_RAW"), nil
	case "baseline":
		return nil, nil
	case "sysadmin":
		return &corev1.SecurityContext{Privileged: new(true)}, nil
	case "restricted":
		return &corev1.SecurityContext{
			RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}, nil
	}
	return nil, cmdutil.UsageErrorf("debug", "--profile must be general, baseline, restricted, netadmin or sysadmin, not %q", name)
}

// add makes the pod's supervisor start the container.
func (d *debugOptions) add(ctx context.Context) error {
	if !d.pod.Alive() {
		return report.New(report.Failure, "podrun ps shows its state", "cannot debug pod %q: it is not running", d.pod.Name)
	}
	l := &podup.Run{Env: d.env, Dirs: d.dirs}
	defer l.Release()
	ephemeral, err := l.LoadEphemeral(d.pod, d.stored, d.container)
	if err != nil {
		return d.invalidContainer(err)
	}
	found, err := l.Ensure(ctx)
	if err != nil {
		return err
	}
	if err := l.Build(ephemeral.Alone, found); err != nil {
		return d.invalidContainer(err)
	}
	plan, err := d.pod.Plan() // read again: another container may have been added
	if err != nil {
		return err
	}
	next, grown, err := ephemeral.AddTo(d.stored, plan)
	if err != nil {
		return report.New(report.Failure, "use --profile=general, or add such a capability to a container of the manifest: the pod then has a user namespace of its own",
			"cannot debug pod %q with this profile: %w", d.pod.Name, err)
	}
	if err := admission.CheckNamespacePolicy(d.dirs, next); err != nil {
		return fmt.Errorf("cannot debug pod %q: %w", d.pod.Name, err)
	}
	text, err := manifest.Marshal(next)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, podup.ApplyTime)
	defer cancel()
	if err := (&podup.Target{Pod: d.pod, Plan: grown}).Apply(within, text); err != nil {
		return fmt.Errorf("cannot debug pod %s: %w", d.pod.Name, err)
	}
	return nil
}

// invalidContainer returns the error for an invalid container. It names no document, because the
// container comes from options.
func (d *debugOptions) invalidContainer(err error) error {
	var in *manifest.Errors
	if !errors.As(err, &in) {
		return err
	}
	var list []string
	hint := ""
	for _, e := range in.List {
		text := e.Message
		if field := strings.TrimPrefix(e.Field, "spec.containers[0]"); field != "" {
			text = strings.TrimPrefix(field, ".") + ": " + text
		}
		list = append(list, text)
	}
	if len(d.container.Command)+len(d.container.Args) == 0 && strings.Contains(list[0], "nothing to run") {
		hint = fmt.Sprintf("podrun debug %s --image %s -- COMMAND", d.pod.Name, d.container.Image)
	}
	return report.New(report.Usage, hint, "cannot debug pod %s: %s", d.pod.Name, strings.Join(list, "; "))
}

// attach waits until the container runs and attaches to it, with its output from the first byte on. For a
// container that has already ended it prints the log.
func (d *debugOptions) attach(ctx context.Context) error {
	name := d.container.Name
	last, err := d.until(ctx, func(s pod.State) bool {
		w := s.Waiting
		return s.Running != nil || s.Terminated != nil || w != nil && strings.HasPrefix(w.Reason, "Create")
	})
	switch {
	case err != nil && !errors.Is(err, podclient.ErrNotRunning):
		return err
	case last.Terminated != nil:
		return d.ended(ctx, last.Terminated)
	case last.Running == nil:
		reason := cmp.Or(last.Waiting, &pod.Waiting{Reason: "the pod ends"})
		return report.New(report.Failure, "podrun describe pod "+d.pod.Name+" shows more", "container %s does not start: %s %s", name, reason.Reason, reason.Message)
	}
	plan, err := d.pod.Plan()
	if err != nil {
		return err
	}
	ct, err := podclient.Named(plan, name)
	if err != nil {
		return err
	}
	attach := &attachOptions{env: d.env, stdin: d.container.Stdin, tty: d.container.TTY, fromStart: true, keys: d.keys, quiet: d.quiet}
	err = attach.attach(ctx, d.pod, ct)
	var refused *exitcode.Error
	if errors.As(err, &refused) && refused.Err != nil { // it may have ended in the meantime
		within, cancel := context.WithTimeout(ctx, podup.ApplyTime)
		defer cancel()
		last, werr := d.until(within, func(s pod.State) bool { return s.Terminated != nil })
		if werr == nil && last.Terminated != nil {
			return d.ended(ctx, last.Terminated)
		}
	}
	return err
}

// until waits for a state of the container, or the pod's end, and returns the last state.
func (d *debugOptions) until(ctx context.Context, reached func(pod.State) bool) (last pod.State, err error) {
	_, err = podclient.Follow(ctx, d.pod, func(st *pod.Status) bool {
		if c, ok := st.Container(d.container.Name); ok {
			last = c.State
		}
		return reached(last) || st.Phase.Terminal()
	})
	return last, err
}

// ended prints the output of a container that has ended, and returns its exit code.
func (d *debugOptions) ended(ctx context.Context, end *pod.Terminated) error {
	err := d.env.RunAgain("logs", "--namespace", d.pod.Namespace, "--container", d.container.Name, d.pod.Name)
	switch {
	case err != nil:
		return err
	case end.ExitCode != 0:
		return &exitcode.Error{Code: end.ExitCode}
	}
	return ctx.Err()
}

// customize merges the user's file into the container.
func (d *debugOptions) customize(file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return report.New(report.Usage, "", "read the custom container spec: %w", err)
	}
	if err := manifest.ApplyCustomProfile(d.container, file, text); err != nil {
		return d.invalidContainer(err)
	}
	return nil
}
