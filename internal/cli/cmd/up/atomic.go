package up

import (
	"cmp"
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/podset"
)

// atomicOptions are the options of --atomic, by which the objects of the files become one set.
type atomicOptions struct {
	atomic    bool
	set       podset.Options
	misplaced []string // flags that are given without --atomic
}

func atomicFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "atomic", Usage: "change all objects as one set: if they do not become ready, or do not stay so, go back to the former version of all"},
		&cli.StringFlag{Name: "name", Usage: "with --atomic: the `NAME` of the set (the last part of the only file, if not given)"},
		&cli.DurationFlag{Name: "stable", Value: podset.DefaultStable, Usage: "with --atomic: all pods must stay ready without a restart for this `DURATION`"},
		&cli.BoolFlag{Name: "allow-older", Usage: "with --atomic: also apply an artifact that was made before the one that runs"},
	}
}

// complete reads the flags.
func (o *atomicOptions) complete(c *cli.Context) {
	o.atomic = c.Bool("atomic")
	o.set = podset.Options{
		Name: c.String("name"), NameGiven: c.IsSet("name"), Timeout: cmp.Or(c.Duration("timeout"), podset.DefaultTimeout), Stable: c.Duration("stable"),
		Rules: podset.Rules{Again: true, Retry: true, AllowOlder: c.Bool("allow-older")},
	}
	for _, name := range []string{"name", "stable", "allow-older"} {
		if !o.atomic && c.IsSet(name) {
			o.misplaced = append(o.misplaced, "--"+name)
		}
	}
}

// validateAtomic checks the flags, and finds the name of the set.
func (o *runOptions) validateAtomic(command string) (err error) {
	switch {
	case len(o.misplaced) > 0:
		return cmdutil.UsageErrorf(command, "%s requires --atomic", o.misplaced[0])
	case !o.atomic:
		return nil
	case o.dryRun != cmdutil.DryRunNone:
		return cmdutil.UsageErrorf(command, "--atomic and --dry-run are mutually exclusive: podrun diff shows what would change")
	case o.set.Name == "" && (len(o.files) != 1 || o.files[0] == "-" || resource.IsURL(o.files[0])):
		return cmdutil.UsageErrorf(command, "--atomic requires --name NAME, the name of the set, for more than one file")
	}
	source := ""
	if len(o.files) == 1 {
		source = o.files[0]
	}
	o.set.Name, err = resource.SetName(o.set.Name, source)
	return errors.Join(err, o.set.Validate(command))
}

// runAtomic changes the set.
func (o *runOptions) runAtomic(ctx context.Context) error {
	o.set.Files, o.set.RequireLimits, o.set.UnsafeSysctls, o.set.Strict = o.files, o.requireLimits, o.unsafeSysctls, o.strict
	return podset.Change(ctx, o.env, o.set, (*podset.Transaction).Run)
}
