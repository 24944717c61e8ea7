package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

func (f *front) execCommand() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a command in a container",
		ArgsUsage: "POD | -f FILE -- COMMAND [ARG...]",
		Description: `Runs a command in a running container and ends with its exit code. The command
never gets podrun's own terminal or files: its input and output are passed on.
At a terminal ctrl-p ctrl-q leaves the command behind, which goes on. A signal
that podrun gets is the command's; the second ends both.

Examples:
  podrun exec web -- cat /etc/hosts
  podrun exec -it web -c frontend -- sh
  podrun exec deployment/web -- hostname
  podrun exec -f web.yaml -- date
  podrun exec -u 1000 -w /srv -e LANG=C web -- ls
  tar c . | podrun exec -i web -- tar x -C /data
`,
		Flags: []cli.Flag{
			namespaceFlag(),
			&cli.StringFlag{Name: "filename", Aliases: []string{"f"}, Usage: "run it in the pod, or the workload, of this `FILE`"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "run it in this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "stdin", Aliases: []string{"i"}, Usage: "pass standard input on"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give the command a terminal"},
			&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; NAME alone takes podrun's own"},
			&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "run it in this `DIRECTORY` instead of the container's"},
			&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "run it as this `USER[:GROUP]`, names of the image or numbers, instead of the container's"},
			detachFlag(),
		},
		Action: f.exec,
	}
}

func (f *front) exec(c *cli.Context) error {
	words := c.Args().Slice()
	if c.IsSet("filename") {
		if len(words) == 0 || words[0] != "--" {
			return usageErrorf("exec", "exec takes either the name of a pod or -f, not both, and after -- a command")
		}
		word, err := f.podIn(c)
		if err != nil {
			return err
		}
		words = append([]string{word}, words...)
	}
	cut := slices.Index(words, "--")
	switch {
	case cut < 0 && len(words) > 1:
		return usageErrorf("exec", "exec takes -- between the pod and the command: podrun exec POD -- COMMAND")
	case cut != 1:
		return usageErrorf("exec", "exec takes the name of one pod, then -- and a command")
	case len(words) == 2:
		return usageErrorf("exec", "you must specify at least one command for the container")
	}
	err := f.execIn(c, words[0], words[2:])
	if asExit(err) == nil && err != nil && report.ClassOf(err) == report.Failure {
		err = &exitError{code: exitInternal, err: err} // code 1 would look like the command's own
	}
	return err
}

// podIn is the word for the one pod, or the one workload, of a file, in whose namespace it
// is looked for.
func (f *front) podIn(c *cli.Context) (string, error) {
	sources, err := f.readAll([]string{c.String("filename")})
	if err != nil {
		return "", err
	}
	docs, err := load(sources)
	if err != nil {
		return "", err
	}
	found := append(docs.pods, docs.workloads...)
	if len(found) != 1 {
		return "", usageErrorf("exec", "%s has %d pods and workloads: name one of them", shown(c.String("filename")), len(found))
	}
	o := &found[0]
	word := o.Value.GetName()
	if o.Pod == nil {
		word = nameOf(o.Stored)
	}
	return word, c.Set("namespace", o.Value.GetNamespace())
}

func (f *front) execIn(c *cli.Context, word string, command []string) error {
	p, plan, err := f.planned(c, word)
	if err != nil {
		return err
	}
	ct, err := f.choose(p, plan, c.String("container"))
	if err != nil {
		return err
	}
	req := wire.ExecRequest{Container: ct.Name, Args: command, User: c.String("user"), Cwd: c.String("workdir")}
	if req.Env, err = f.variables(c.StringSlice("env")); err != nil {
		return err
	}
	if req.Cwd != "" && !path.IsAbs(req.Cwd) {
		return usageErrorf("exec", "--workdir: %q is not an absolute path", req.Cwd)
	}
	x := &execution{front: f, pod: p, container: ct.Name, stdin: c.Bool("stdin")}
	if x.keys, err = detachKeys(c); err != nil {
		return err
	}
	if c.Bool("tty") {
		if terminal, ok := tty.File(f.in); ok {
			x.terminal = terminal
			req.TTY, req.Term = true, f.getenv("TERM")
			cols, rows := tty.Size(terminal)
			req.Cols, req.Rows = uint16(cols), uint16(rows)
		} else {
			// kubectl's words, and its way: go on without.
			fmt.Fprintln(f.err, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
	}
	code, err := x.run(c.Context, req)
	return exitAs("exec in", p, code, err)
}

// variables are NAME=VALUE, the values of mere NAMEs being our own.
func (f *front) variables(words []string) ([]string, error) {
	var env []string
	for _, word := range words {
		name, _, whole := strings.Cut(word, "=")
		if name == "" {
			return nil, usageErrorf("exec", "--env: %q has no name", word)
		}
		if !whole {
			word += "=" + f.getenv(name)
		}
		env = append(env, word)
	}
	return env, nil
}
