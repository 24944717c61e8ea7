package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
)

// runDry prints what up or apply would do.
func (o *runOptions) runDry(ctx context.Context) error {
	if o.dryRun == cmdutil.DryRunServer {
		return o.runDryServer(ctx)
	}
	env := o.env
	docs, err := o.loadManifests()
	if err != nil {
		return err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	if err := o.applyToPods(&docs); err != nil {
		return err
	}
	if o.onlyNew {
		if err := refuseExisting(dirs, docs); err != nil {
			return err
		}
	}
	if err := o.admit(dirs, docs); err != nil {
		return err
	}
	var lines []string
	var errs []error
	for _, o := range slices.Concat(docs.Stored, docs.Workloads) {
		k, err := objects.Compare(env, dirs, &o)
		lines, errs = append(lines, kindnames.Display(o.Stored)+" "+k.Verb), append(errs, err)
	}
	for i := range docs.Pods {
		o := &docs.Pods[i]
		old, next, err := podDiff(dirs, o)
		word, place := "configured", dirs.Pod(o.Pod.Namespace, o.Pod.Name)
		switch {
		case old == nil, place.Removing():
			word = "created"
		case !place.Alive(), podclient.IsEnding(place):
			word = "started"
		case bytes.Equal(old, next):
			word = "unchanged"
		}
		lines, errs = append(lines, "pod/"+o.Pod.Name+" "+word), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(env.Out, line, "(dry run)")
	}
	return nil
}

// runDryServer does everything that can fail before a pod exists, except pulling and building images.
func (o *runOptions) runDryServer(ctx context.Context) error {
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	l, _, err := o.load(ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	prepare := func(ctx context.Context) error { return l.PrepareDryRun(ctx, o.builds) }
	if err := cmdutil.Interruptible(ctx, signals, prepare); err != nil {
		return err
	}
	var errs []error
	for _, doc := range slices.Concat(l.Stored, l.Workloads) {
		k, err := objects.Compare(o.env, l.Dirs, &doc)
		if errs = append(errs, err); err == nil {
			fmt.Fprintf(o.env.Out, "%s %s (server dry run)\n", kindnames.Display(doc.Stored), k.Verb)
		}
	}
	for _, p := range l.Targets {
		fmt.Fprintf(o.env.Out, "pod/%s %s (server dry run)\n", p.Pod.Name, p.Outcome())
	}
	return errors.Join(errs...)
}
