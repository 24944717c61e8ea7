// Package cli is the command tree of podrun: global options, help, exit codes and hidden entry points.
// The commands are in cmd, one package for each group; shared code is in internal. Results go to stdout
// and everything else to stderr. An error is reported once, as a sentence and a hint, with an exit code
// of package exitcode. Text from a manifest, an image or a container is escaped before it is written to a
// terminal.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/cmd/build"
	"github.com/podrun/podrun/internal/cli/cmd/change"
	"github.com/podrun/podrun/internal/cli/cmd/cluster"
	"github.com/podrun/podrun/internal/cli/cmd/compose"
	"github.com/podrun/podrun/internal/cli/cmd/convert"
	"github.com/podrun/podrun/internal/cli/cmd/describe"
	"github.com/podrun/podrun/internal/cli/cmd/events"
	"github.com/podrun/podrun/internal/cli/cmd/exec"
	"github.com/podrun/podrun/internal/cli/cmd/explain"
	"github.com/podrun/podrun/internal/cli/cmd/follow"
	"github.com/podrun/podrun/internal/cli/cmd/get"
	"github.com/podrun/podrun/internal/cli/cmd/image"
	"github.com/podrun/podrun/internal/cli/cmd/kustomize"
	"github.com/podrun/podrun/internal/cli/cmd/label"
	"github.com/podrun/podrun/internal/cli/cmd/logs"
	"github.com/podrun/podrun/internal/cli/cmd/metrics"
	"github.com/podrun/podrun/internal/cli/cmd/node"
	"github.com/podrun/podrun/internal/cli/cmd/object"
	"github.com/podrun/podrun/internal/cli/cmd/podaction"
	"github.com/podrun/podrun/internal/cli/cmd/rollout"
	"github.com/podrun/podrun/internal/cli/cmd/run"
	"github.com/podrun/podrun/internal/cli/cmd/system"
	"github.com/podrun/podrun/internal/cli/cmd/systemd"
	"github.com/podrun/podrun/internal/cli/cmd/top"
	"github.com/podrun/podrun/internal/cli/cmd/ui"
	"github.com/podrun/podrun/internal/cli/cmd/up"
	"github.com/podrun/podrun/internal/cli/cmd/update"
	"github.com/podrun/podrun/internal/cli/cmd/volume"
	"github.com/podrun/podrun/internal/cli/cmd/wait"
	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/hostdeps"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Main runs one command line, where args[0] is the program, and returns its exit code. getenv is
// os.Getenv outside tests.
func Main(args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	return Run(cmdutil.New(getenv, hostdeps.Deps{}, stdin, stdout, stderr), args)
}

// Run finds the command, answers --help and completion requests, runs the command and reports its error.
func Run(env *cmdutil.Env, args []string) int {
	env.Main = Run
	if len(args) > 1 && args[1] == system.CompleteCommand {
		system.Completer{Env: env, Tree: commandTree(env)}.Complete(args[2:])
		return 0
	}
	app := commandTree(env)
	path, cmd, rest := cmdline.Find(app, args[1:])
	if cmdline.WantsHelp(cmd, rest) {
		fmt.Fprint(env.Out, cmdline.Help(path, cmd, app))
		return 0
	}
	err := useNamespace(env, cmd, rest)
	if err == nil {
		lookAfter(env, path)
		words := append([]string{app.Name}, path...)
		err = app.Run(append(words, cmdline.Arrange(cmd, rest)...))
	}
	return exitcode.Report(env.ErrOut, err)
}

// unrelated are the commands that need no pods to be looked after: they concern none, or report what is wrong. A
// generator of systemd, like systemd generate, may start nothing.
var unrelated = []string{"api-resources", "build", "config", "convert", "completion", "doctor", "explain", "help", "image", "images", "kustomize", "login", "logout", "man", "pull", "rmi", "validate", "version"}

// lookAfter restarts killed controllers and takes up lost pods, whatever the command does.
func lookAfter(env *cmdutil.Env, path []string) {
	if len(path) > 1 && path[0] == "compose" {
		path = path[1:]
	}
	if len(path) == 0 || slices.Contains(unrelated, path[0]) || slices.Equal(path, []string{"systemd", "generate"}) {
		return
	}
	if there, err := store.FindUserDirs(env.Getenv); err != nil || store.Trusted(there.Data) != nil {
		return // there are no pods yet, or the command reports the error
	}
	dirs, err := env.Dirs()
	if err != nil {
		return
	}
	controller.LookAfter(context.Background(), env, dirs, slices.Contains([]string{"delete", "down", "stop"}, path[0]))
}

// commandTree returns the tree of commands.
func commandTree(env *cmdutil.Env) *cli.App {
	app := &cli.App{
		Name:                      "podrun",
		Usage:                     "run Kubernetes Pods on this machine, without root and without a daemon",
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Writer:                    env.Out,
		ErrWriter:                 env.ErrOut,
		ExitErrHandler:            func(*cli.Context, error) {}, // Run reports errors
		Action:                    func(c *cli.Context) error { return runRoot(env, c) },
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` ($PODRUN_NAMESPACE or \"default\" if not given); this and other options of a command may come before the command's name"},
		},
		Commands: commands(env),
	}
	app.OnUsageError = cmdline.UsageError("podrun", &cli.Command{Flags: app.Flags})
	env.Namespace = podclient.DefaultNamespace
	if env.Getenv != nil {
		env.Namespace = cmp.Or(env.Getenv(podclient.NamespaceEnv), podclient.DefaultNamespace)
	}
	setDefaults(env, app.Commands, "podrun")
	return app
}

// commands returns the commands, by the headings of the help.
func commands(env *cmdutil.Env) []*cli.Command {
	return slices.Concat(
		group("Basic",
			up.NewCommand(env),
			run.NewCommand(env),
			up.NewApplyCommand(env),
			object.NewCreateCommand(env, up.NewCreateCommand(env)),
			podaction.NewDownCommand(env),
			object.NewDeleteCommand(env),
			get.NewPsCommand(env),
			get.NewCommand(env),
			explain.NewCommand(env),
			explain.NewResourcesCommand(env),
			podaction.NewStopCommand(env),
			podaction.NewStartCommand(env),
			podaction.NewRestartCommand(env),
			podaction.NewKillCommand(env),
			podaction.NewPauseCommand(env),
			podaction.NewUnpauseCommand(env),
			compose.NewCommand(env),
		),
		group("Deploy",
			rollout.NewCommand(env),
			rollout.NewScaleCommand(env),
			rollout.NewSetCommand(env),
			change.NewPatchCommand(env),
			change.NewEditCommand(env),
			change.NewReplaceCommand(env),
			label.NewLabelCommand(env),
			label.NewAnnotateCommand(env),
			update.NewCommand(env),
			follow.NewCommand(env),
			up.NewDiffCommand(env),
			up.NewValidateCommand(env),
			convert.NewCommand(env),
			kustomize.NewCommand(env),
			wait.NewCommand(env),
			wait.NewConditionCommand(env),
		),
		group("Troubleshooting",
			describe.NewCommand(env),
			logs.NewCommand(env),
			events.NewCommand(env),
			top.NewCommand(env),
			ui.NewCommand(env),
			metrics.NewCommand(env),
			exec.NewCommand(env),
			exec.NewAttachCommand(env),
			exec.NewCpCommand(env),
			exec.NewDebugCommand(env),
			exec.NewPortForwardCommand(env),
			exec.NewPortCommand(env),
		),
		group("Image",
			image.NewCommand(env),
			build.NewCommand(env),
			image.NewLoginCommand(env),
			image.NewLogoutCommand(env),
			alias("pull", image.NewPullCommand(env)),
			alias("images", image.NewLsCommand(env)),
			alias("rmi", image.NewRmCommand(env)),
		),
		group("System",
			volume.NewCommand(env),
			systemd.NewCommand(env),
			node.NewCommand(env),
			cluster.NewCommand(env),
			system.NewDoctorCommand(env),
			system.NewCompletionCommand(env),
			system.NewManCommand(env),
			system.NewVersionCommand(env),
			newHelpCommand(env),
		),
	)
}

// group sets the heading under which the help lists commands.
func group(category string, cmds ...*cli.Command) []*cli.Command {
	for _, c := range cmds {
		c.Category = category
	}
	return cmds
}

// setDefaults removes the library's own help and usage output from every command, and sets the default
// namespace.
func setDefaults(env *cmdutil.Env, cmds []*cli.Command, path string) {
	for _, c := range cmds {
		full := path + " " + c.Name
		c.HideHelp = true
		c.OnUsageError = cmdline.UsageError(full, c)
		if flag, ok := cmdline.FindFlag(c, "namespace").(*cli.StringFlag); ok {
			flag.Value = env.Namespace
		}
		setDefaults(env, c.Subcommands, full)
	}
}

// runRoot handles `podrun` alone, `podrun --version` and words that are no command.
func runRoot(env *cmdutil.Env, c *cli.Context) error {
	switch {
	case c.Bool("version"):
		return system.PrintVersion(env)
	case c.Args().Present():
		return cmdline.UnknownCommand(c.App.Commands, "podrun", c.Args().First())
	}
	fmt.Fprint(env.Out, welcome)
	return nil
}

const welcome = `podrun runs Kubernetes Pods on this machine, without root and without a daemon.

  podrun up pod.yaml     run the pod and show its output; Ctrl-C stops it
  podrun ps              list the pods
  podrun down NAME       stop and remove a pod

podrun --help lists all commands.
`

// alias returns a command under the name that docker and podman have for it.
func alias(name string, c *cli.Command) *cli.Command {
	c.Description = strings.ReplaceAll(c.Description, "podrun image "+c.Name, "podrun "+name)
	c.Usage += ", as podrun image " + c.Name
	c.Name = name
	return c
}

// useNamespace sets the namespace for names without one: the value of -n among the words of the command,
// else $PODRUN_NAMESPACE.
func useNamespace(env *cmdutil.Env, cmd *cli.Command, words []string) error {
	env.NamespaceFlag = cmdline.FlagValue(cmd, words, "namespace")
	if env.NamespaceFlag != "" {
		env.Namespace = env.NamespaceFlag
	} else if cmdline.FindFlag(cmd, "namespace") != nil && len(validation.IsDNS1123Label(env.Namespace)) > 0 {
		return report.New(report.Usage, "set "+podclient.NamespaceEnv+" to a name such as web, or unset it", "%s=%q is not the name of a namespace", podclient.NamespaceEnv, env.Namespace)
	}
	return nil
}
