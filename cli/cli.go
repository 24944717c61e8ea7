// Package cli is podrun's command line: it turns words into requests to the
// other rooms, and their answers into text and exit codes.
//
// What a user meets is ruled here: results go to stdout and everything else to
// stderr; an error is said once, as a sentence and a hint, with an exit code from
// the table in exit.go; what comes from a manifest, an image or a container is
// escaped before a terminal sees it.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Main runs one command line, of which args[0] is the program, and returns its
// exit code. getenv is os.Getenv.
func Main(args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	f := &front{getenv: getenv, in: stdin, out: stdout, err: stderr, rooms: house{}, signals: remote.Signals, pullBackOff: pullBackOff, stillAfter: stillAfter}
	return f.run(args)
}

// front is one invocation: its streams, its environment, and what it asks others
// for. Tests put fakes into it.
type front struct {
	getenv   func(string) string
	in       io.Reader
	out, err io.Writer
	rooms    rooms
	signals  func(...os.Signal) (arrived <-chan os.Signal, stop func())

	pullBackOff func(attempt int) time.Duration
	stillAfter  time.Duration

	namespace     string // of what names none
	onlyNamespace string // the value of -n, "" if not given

	made      *madeObjects // by this command, for -o; nil: not known yet
	foresight *foresight   // nil unless the command may start a pod at once

	again func(*front, []string) int // runs another command line with the same streams
}

// run finds the command, answers --help, runs it and says its error.
func (f *front) run(args []string) int {
	f.again = (*front).run
	if len(args) > 1 && args[1] == completeWord {
		completer{f, f.app()}.complete(args[2:])
		return 0
	}
	app := f.app()
	path, cmd, rest := find(app, args[1:])
	if wantsHelp(cmd, rest) {
		fmt.Fprint(f.out, help(path, cmd, app))
		return 0
	}
	err := f.useNamespace(cmd, rest)
	if err == nil {
		words := append([]string{app.Name}, path...)
		err = app.Run(append(words, arrange(cmd, rest)...))
	}
	if err == nil {
		return 0
	}
	if rest := unsaid(err); rest != nil {
		report.Print(f.err, rest)
	}
	return exitCode(err)
}

// app is the tree of commands.
func (f *front) app() *cli.App {
	app := &cli.App{
		Name:                      "podrun",
		Usage:                     "run Kubernetes Pods on this machine, without root and without a daemon",
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Writer:                    f.out,
		ErrWriter:                 f.err,
		ExitErrHandler:            func(*cli.Context, error) {}, // run says errors
		Action:                    f.noCommand,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` of the command that follows ($PODRUN_NAMESPACE or \"default\" if not given); other options of that command may precede it, too"},
		},
		Commands: []*cli.Command{
			f.upCommand(),
			f.applyCommand(),
			f.diffCommand(),
			f.downCommand(),
			f.stopCommand(),
			f.startCommand(),
			f.restartCommand(),
			f.killCommand(),
			f.pauseCommand(),
			f.unpauseCommand(),
			f.updateCommand(),
			f.createCommand(),
			f.deleteCommand(),
			f.psCommand(),
			f.getCommand(),
			f.describeCommand(),
			f.logsCommand(),
			f.eventsCommand(),
			f.topCommand(),
			f.uiCommand(),
			f.execCommand(),
			f.attachCommand(),
			f.cpCommand(),
			f.debugCommand(),
			f.portForwardCommand(),
			f.portCommand(),
			f.waitCommand(),
			f.conditionCommand(),
			f.validateCommand(),
			f.imageCommand(),
			f.loginCommand(),
			f.logoutCommand(),
			alias("pull", f.imagePullCommand()),
			alias("images", f.imageLsCommand()),
			alias("rmi", f.imageRmCommand()),
			f.volumeCommand(),
			f.systemdCommand(),
			f.doctorCommand(),
			f.completionCommand(),
			f.manCommand(),
			f.versionCommand(),
			f.helpCommand(),
		},
	}
	app.OnUsageError = usageError("podrun", &cli.Command{Flags: app.Flags})
	f.namespace = remote.DefaultNamespace
	if f.getenv != nil {
		f.namespace = cmp.Or(f.getenv(remote.NamespaceEnv), remote.DefaultNamespace)
	}
	f.tame(app.Commands, "podrun")
	return app
}

// tame takes the library's own help and usage output away from every command, and sets
// the namespace that is used where none is given.
func (f *front) tame(cmds []*cli.Command, path string) {
	for _, c := range cmds {
		own := path + " " + c.Name
		c.HideHelp = true
		c.OnUsageError = usageError(own, c)
		if flag, ok := findFlag(c, "namespace").(*cli.StringFlag); ok {
			flag.Value = f.namespace
		}
		f.tame(c.Subcommands, own)
	}
}

// noCommand answers `podrun` alone, `podrun --version` and words that are no command.
func (f *front) noCommand(c *cli.Context) error {
	switch {
	case c.Bool("version"):
		return f.printVersion()
	case c.Args().Present():
		return unknownCommand(c.App.Commands, "podrun", c.Args().First())
	}
	fmt.Fprint(f.out, welcome)
	return nil
}

const welcome = `podrun runs Kubernetes Pods on this machine, without root and without a daemon.

  podrun up pod.yaml     run the pod and show its output; Ctrl-C stops it
  podrun ps              list the pods
  podrun down NAME       stop and remove a pod

podrun --help lists all commands.
`

// dirs finds where podrun keeps things.
func (f *front) dirs() (store.Dirs, error) { return store.UserDirs(f.getenv) }
