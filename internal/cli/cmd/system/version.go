package system

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/programs"
)

// NewVersionCommand returns the command version.
func NewVersionCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Description: `Prints podrun's version, the Go release it was built with, and the platform;
-o json adds the commit, its date, and the libraries.

Examples:
  podrun version
  podrun version -o json
`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT`: json"}},
		Action: cmdutil.Action(func() cmdutil.Command { return &versionOptions{jsonOptions{env: env}} }),
	}
}

// jsonOptions are the options of a command that takes nothing but -o json.
type jsonOptions struct {
	env             *cmdutil.Env
	command, format string
	words           []string
	formatted       bool // -o is given
}

func (o *jsonOptions) Complete(c *cli.Context) error {
	o.command, o.words, o.format, o.formatted = c.Command.Name, c.Args().Slice(), c.String("output"), c.IsSet("output")
	return nil
}

func (o *jsonOptions) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf(o.command, "%s accepts no arguments", o.command)
	case o.formatted && o.format != "json":
		return cmdutil.UsageErrorf(o.command, "unknown output format %q: use json", o.format)
	}
	return nil
}

type versionOptions struct{ jsonOptions }

func (o *versionOptions) Run(context.Context) error {
	if o.formatted {
		return printVersionJSON(o.env)
	}
	return PrintVersion(o.env)
}

// PrintVersion prints the version in one line.
func PrintVersion(env *cmdutil.Env) error {
	_, err := fmt.Fprintf(env.Out, "podrun %s (%s %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// library is a Go module, or a C library with the version of its Debian package.
type library struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// printVersionJSON prints the version as JSON. Fields may be added, never changed.
func printVersionJSON(env *cmdutil.Env) error {
	text, err := json.MarshalIndent(struct {
		Version   string    `json:"version"`
		GoVersion string    `json:"goVersion"`
		Platform  string    `json:"platform"`
		Commit    string    `json:"commit,omitempty"`
		Date      string    `json:"date,omitempty"` // of the commit, so that a build can be repeated
		Libraries []library `json:"libraries"`
	}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, setting("vcs.revision"), setting("vcs.time"), libraries()}, "", "  ")
	if err != nil {
		return err
	}
	return env.WriteSafe(append(text, '\n'))
}

// version returns the version that the go command stamped: a tag, or a commit's time and hash.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "(development)"
	}
	return info.Main.Version
}

// setting returns a setting of the build, or "".
func setting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// libraries returns what the CLI and the embedded programs are linked with, sorted by name. A replaced module
// is listed by its own name and version.
func libraries() []library {
	list := []library{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			list = append(list, library{m.Path, m.Version})
		}
	}
	for line := range strings.Lines(programs.Libraries) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			list = append(list, library{name, version})
		}
	}
	slices.SortFunc(list, func(a, b library) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return slices.Compact(list)
}
