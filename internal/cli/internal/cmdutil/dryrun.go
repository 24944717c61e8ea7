package cmdutil

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// DryRun is the value of --dry-run, as in kubectl: none, client or server; client if the flag has no
// value.
type DryRun string

const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// DryRunFlag returns the flag --dry-run.
func DryRunFlag(usage string) cli.Flag {
	value := DryRunNone
	return &cli.GenericFlag{Name: "dry-run", Value: &value, Usage: usage}
}

// DryRunOf returns the value of --dry-run.
func DryRunOf(c *cli.Context) DryRun {
	if d, ok := c.Generic("dry-run").(*DryRun); ok {
		return *d
	}
	return DryRunNone
}

// DryRunUsage is the usage text of --dry-run.
const DryRunUsage = "create and change nothing, but print what would be done: =client compares the manifests with the existing objects; =server also checks this machine, ports and images"

// IsBoolFlag allows the flag without a value.
func (d *DryRun) IsBoolFlag() bool { return true }

// Set parses the value of the flag.
func (d *DryRun) Set(text string) error {
	switch text {
	case "true":
		*d = DryRunClient
	case "false":
		*d = DryRunNone
	case string(DryRunNone), string(DryRunClient), string(DryRunServer):
		*d = DryRun(text)
	default:
		return errors.New("no strategy of a dry run")
	}
	return nil
}

func (d *DryRun) String() string { return string(*d) }

// Suffix returns what is appended to reports of a dry run, in kubectl's words.
func (d DryRun) Suffix() string {
	if d == DryRunServer {
		return " (server dry run)"
	}
	return " (dry run)"
}
