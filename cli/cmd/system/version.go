package system

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
)

// NewVersionCommand returns the command version.
func NewVersionCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Description: `Prints podrun's version, the Go release it was built with, and the platform.

Examples:
  podrun version
  podrun version -o json
`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT`: json"}},
		Action: func(c *cli.Context) error {
			format := c.String("output")
			switch {
			case c.Args().Present():
				return cmdutil.UsageErrorf("version", "version takes no arguments")
			case c.IsSet("output") && format != "json":
				return cmdutil.UsageErrorf("version", "unknown output format %q: only json is supported", format)
			case format == "json":
				return printVersionJSON(env)
			}
			return PrintVersion(env)
		},
	}
}

// PrintVersion prints the version in one line.
func PrintVersion(env *cmdutil.Env) error {
	_, err := fmt.Fprintf(env.Out, "podrun %s (%s %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// printVersionJSON prints the version as JSON. Fields may be added, never changed.
func printVersionJSON(env *cmdutil.Env) error {
	text, err := json.MarshalIndent(struct {
		Version   string `json:"version"`
		GoVersion string `json:"goVersion"`
		Platform  string `json:"platform"`
	}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, "", "  ")
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
