package cmdutil

import (
	"context"

	"github.com/urfave/cli/v2"
)

// Command is one call of a command, as kubectl's: Complete reads the command line into the command's
// fields, Validate checks them against each other, Run does the work. Only Complete gets the
// context of package cli.
type Command interface {
	Complete(c *cli.Context) error
	Validate() error
	Run(ctx context.Context) error
}

// Action returns the action of a command. newCommand is called once for each call of the action.
func Action(newCommand func() Command) cli.ActionFunc {
	return func(c *cli.Context) error {
		cmd := newCommand()
		if err := cmd.Complete(c); err != nil {
			return err
		}
		if err := cmd.Validate(); err != nil {
			return err
		}
		return cmd.Run(c.Context)
	}
}
