package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func (f *front) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Description: `Prints podrun's version, the Go release it was built with, and the platform.

Examples:
  podrun version
`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageErrorf("version", "version takes no arguments")
			}
			return f.printVersion()
		},
	}
}

func (f *front) printVersion() error {
	_, err := fmt.Fprintf(f.out, "podrun %s (%s %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version is what the go command stamped: a tag, or a commit's time and hash.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "(development)"
	}
	return info.Main.Version
}
