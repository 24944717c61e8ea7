package up

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/admission"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/cli/internal/resource"
)

// dryRunClient prints what up or apply would do with files.
func dryRunClient(env *cmdutil.Env, c *cli.Context, files []string, how cmdutil.DryRun) error {
	if how == cmdutil.DryRunServer {
		return dryRunServer(env, c, files)
	}
	sources, readErr := resource.ReadFiles(env, files)
	docs, err := resource.Load(sources)
	if err := errors.Join(readErr, err); err != nil {
		return err
	}
	if err := reportIgnored(env, docs.Ignored, c.Bool("strict")); err != nil {
		return err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	if err := applyNetworkFlag(c, docs.Pods); err != nil {
		return err
	}
	if err := admission.CheckPodSecurity(env, dirs, docs, c.String("policy")); err != nil {
		return err
	}
	var said []string
	var errs []error
	for _, o := range slices.Concat(docs.Stored, docs.Workloads) {
		k, err := objects.Compare(env, dirs, &o)
		said, errs = append(said, kindnames.Display(o.Stored)+" "+k.Verb), append(errs, err)
	}
	for i := range docs.Pods {
		o := &docs.Pods[i]
		old, next, err := podDiff(dirs, o)
		word := "configured"
		switch {
		case old == nil:
			word = "created"
		case !dirs.Pod(o.Pod.Namespace, o.Pod.Name).Alive():
			word = "started"
		case bytes.Equal(old, next):
			word = "unchanged"
		}
		said, errs = append(said, "pod/"+o.Pod.Name+" "+word), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, line := range said {
		fmt.Fprintln(env.Out, line, "(dry run)")
	}
	return nil
}

// dryRunServer does everything that can fail before a pod exists, except pulling images.
func dryRunServer(env *cmdutil.Env, c *cli.Context, files []string) error {
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	l, _, err := newRun(env, c, files)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := cmdutil.Interruptible(c.Context, signals, l.PrepareDryRun); err != nil {
		return err
	}
	var errs []error
	for _, o := range slices.Concat(l.Stored, l.Workloads) {
		k, err := objects.Compare(env, l.Dirs, &o)
		if errs = append(errs, err); err == nil {
			fmt.Fprintf(env.Out, "%s %s (server dry run)\n", kindnames.Display(o.Stored), k.Verb)
		}
	}
	for _, p := range l.Targets {
		fmt.Fprintf(env.Out, "pod/%s %s (server dry run)\n", p.Pod.Name, p.Outcome())
	}
	return errors.Join(errs...)
}
