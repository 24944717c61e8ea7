package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// dryRun is the value of --dry-run, as kubectl has it: none, client or server; client if it
// has no value.
type dryRun string

const (
	dryNone   dryRun = "none"
	dryClient dryRun = "client"
	dryServer dryRun = "server"
)

func (d *dryRun) String() string { return string(*d) }

// IsBoolFlag lets it stand alone.
func (d *dryRun) IsBoolFlag() bool { return true }

func (d *dryRun) Set(text string) error {
	switch text {
	case "true":
		*d = dryClient
	case "false":
		*d = dryNone
	case string(dryNone), string(dryClient), string(dryServer):
		*d = dryRun(text)
	default:
		return errors.New("no strategy of a dry run")
	}
	return nil
}

// said is what is added to what would be done, in kubectl's words.
func (d dryRun) said() string {
	if d == dryServer {
		return " (server dry run)"
	}
	return " (dry run)"
}

func dryRunFlag(usage string) cli.Flag {
	value := dryNone
	return &cli.GenericFlag{Name: "dry-run", Value: &value, Usage: usage}
}

func dryRunOf(c *cli.Context) dryRun {
	if d, ok := c.Generic("dry-run").(*dryRun); ok {
		return *d
	}
	return dryNone
}

const dryRunUsage = "make and change nothing, but say what would be: =client holds the manifests against what is there; =server tries this machine, ports and images, too"

// rehearse says what up or apply of files would do.
func (f *front) rehearse(c *cli.Context, files []string, how dryRun) error {
	if how == dryServer {
		return f.rehearseHere(c, files)
	}
	sources, readErr := f.readAll(files)
	docs, err := load(sources)
	if err := errors.Join(readErr, err); err != nil {
		return err
	}
	if err := f.judgeIdle(docs.idle, c.Bool("strict")); err != nil {
		return err
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	if err := askNetwork(c, docs.pods); err != nil {
		return err
	}
	if err := f.judgePolicy(dirs, docs, c.String("policy")); err != nil {
		return err
	}
	var said []string
	var errs []error
	for _, o := range slices.Concat(docs.stored, docs.workloads) {
		k, err := f.compared(dirs, &o)
		said, errs = append(said, nameOf(o.Stored)+" "+k.word), append(errs, err)
	}
	for i := range docs.pods {
		o := &docs.pods[i]
		old, next, err := podBeside(dirs, o)
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
		fmt.Fprintln(f.out, line, "(dry run)")
	}
	return nil
}

// rehearseHere does what can fail before a pod exists, but for pulling images.
func (f *front) rehearseHere(c *cli.Context, files []string) error {
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	l, _, err := f.newLaunch(c, files)
	if err != nil {
		return err
	}
	defer l.release()
	if err := interruptible(c.Context, signals, l.rehearse); err != nil {
		return err
	}
	var errs []error
	for _, o := range slices.Concat(l.stored, l.workloads) {
		k, err := f.compared(l.dirs, &o)
		if errs = append(errs, err); err == nil {
			fmt.Fprintf(f.out, "%s %s (server dry run)\n", nameOf(o.Stored), k.word)
		}
	}
	for _, p := range l.pods {
		fmt.Fprintf(f.out, "pod/%s %s (server dry run)\n", p.place.Name, p.becomes())
	}
	return errors.Join(errs...)
}

// becomes says what up makes of a pod.
func (p *upPod) becomes() string {
	switch {
	case p.change != nil:
		return "configured"
	case p.running:
		return "unchanged"
	case !p.anew && !p.replaces && p.place.Exists(): // it was stopped, or has ended
		return "started"
	}
	return "created"
}

// rehearse is prepare without a pull: of pods all of whose images are there the plans are
// made, too.
func (l *launch) rehearse(ctx context.Context) error {
	if err := l.look(ctx); err != nil {
		return err
	}
	images, err := l.front.rooms.images(l.dirs)
	if err != nil {
		return err
	}
	if l.hold, err = images.Lease(); err != nil {
		return err
	}
	found := map[use]pod.Image{}
	var errs []error
	for _, u := range l.uses() {
		ref := u.ref
		if u.id != "" {
			ref = u.id
		}
		img, err := images.Ensure(ctx, ref, image.Never, l.pull)
		switch {
		case err == nil:
			found[u] = img
		case u.policy == image.Never || u.id != "":
			errs = append(errs, fmt.Errorf("cannot use image %s: %w", u.ref, err))
		default:
			fmt.Fprintf(l.front.err, "podrun: image %s is not here: it would be pulled\n", u.ref)
		}
	}
	for _, p := range slices.Concat(l.pods, l.samples) {
		whole := !p.running || p.change != nil
		for _, i := range manifest.Images(p.object.Pod) {
			_, here := found[p.use(i)]
			whole = whole && (here || p.running && !p.changes(i.Container))
		}
		if whole {
			errs = append(errs, l.build(p, found))
		}
	}
	return errors.Join(append(errs, l.grow(errors.Join(errs...)))...)
}
