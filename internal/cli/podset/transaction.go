// Package podset changes sets: pods and objects that are applied together. A set that does not become ready goes back to
// its former version as a whole, also after a kill or a power cut in the middle.
package podset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/setreport"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// Options are how a set is changed.
type Options struct {
	Name            string
	NameGiven       bool          // by the user; else it is the last part of the source
	Files           []string      // its source; none for a way back
	Timeout, Stable time.Duration // within Timeout all is ready, and stays so for Stable
	Rules
	RequireLimits bool
	UnsafeSysctls []string
	Strict        bool // objects without effect are an error

	// Report is where changes are reported from now on; nil: where the record says.
	Report *store.SetReport
	// Restart starts the pods of an update, if a unit of systemd does that; else nil.
	Restart func(context.Context) error
}

// The defaults of Timeout and Stable.
const (
	DefaultTimeout = 5 * time.Minute
	DefaultStable  = 10 * time.Second
)

// Validate returns an error of a command if the options cannot be.
func (o *Options) Validate(command string) error {
	if o.Timeout <= 0 || o.Stable < 0 {
		return cmdutil.UsageErrorf(command, "--timeout and --stable must not be negative, and --timeout not 0")
	}
	return nil
}

// backTime is the least time for the former version to become ready again: a short Timeout applies to the new version
// only.
const backTime = DefaultTimeout

// Transaction changes one set. It holds the set's lock until Close.
type Transaction struct {
	Options
	env    *cmdutil.Env
	dirs   store.Dirs
	images *image.Store
	record *store.Set
	lock   *store.FileLock

	rejected   *store.SetReject // of StepRejected
	unfinished error            // why the set could not go back, or could not be started: the source may have what helps
}

// Change begins a transaction, changes the set with change, and ends the transaction. A signal interrupts it.
func Change(ctx context.Context, env *cmdutil.Env, o Options, change func(*Transaction, context.Context) error) error {
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		t, err := Begin(env, o)
		if err != nil {
			return err
		}
		defer t.Close()
		return change(t, ctx)
	})
}

// Begin locks a set and reads its record.
func Begin(env *cmdutil.Env, o Options) (t *Transaction, err error) {
	dirs, err := env.Dirs() // the host is checked before a change: a look without one writes nothing
	if err != nil {
		return nil, err
	}
	t = &Transaction{Options: o, env: env, dirs: dirs}
	if t.images, err = cmdutil.OpenImages(dirs); err != nil {
		return nil, err
	}
	if t.lock, err = dirs.LockSet(o.Name); err != nil {
		return nil, err
	}
	free, err := t.lock.TryExclusive()
	if err == nil && !free {
		err = report.New(report.Failure, "try again when that is done", "%s is being changed by another podrun command", t.title())
	}
	if err == nil {
		t.record, err = dirs.Set(o.Name)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	if t.record == nil {
		t.record = &store.Set{}
	}
	if o.Report != nil {
		t.record.Report = *o.Report
	}
	if t.record.Next == nil { // there is nothing from which to go back
		t.record.State = store.SetSettled
	}
	if err := errors.Join(t.refuseOtherSource(), t.retag()); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// refuseOtherSource returns an error if the set comes from another repository, and has its name from the source: the sets
// team/manifests and other/manifests are two.
func (t *Transaction) refuseOtherSource() error {
	if t.NameGiven || len(t.Files) != 1 {
		return nil
	}
	was, now := repositoryOf(t.record.Source), repositoryOf(t.Files[0])
	if was == "" || now == "" || was == now {
		return nil
	}
	return report.New(report.Failure, "--name "+t.Name+" changes it; another --name makes another set", "set %s comes from %s", t.Name, t.record.Source)
}

// repositoryOf returns the repository of an artifact; "" for other sources.
func repositoryOf(source string) string {
	name, ok := strings.CutPrefix(source, "oci://")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	return name
}

// Close releases the set.
func (t *Transaction) Close() error { return t.lock.Close() }

// Run does what is due: it finishes an interrupted change, starts the current version after a restart of the machine, looks
// at the source, and tries its version. It prints the result.
func (t *Transaction) Run(ctx context.Context) error {
	step, err := t.run(ctx)
	if err != nil {
		return err
	}
	word := "unchanged"
	switch step {
	case StepTry:
		word = "applied"
	case StepRejected:
		fmt.Fprintf(t.env.ErrOut, "podrun: set %s: its newest version has failed before, and is not tried again: %s; --retry tries it\n", t.Name, report.Escape(t.rejected.Reason))
	}
	fmt.Fprintf(t.env.Out, "set/%s %s\n", t.Name, word)
	return nil
}

// run is Run without the output. It returns the step that was the last.
func (t *Transaction) run(ctx context.Context) (Step, error) {
	if t.record.State == store.SetSettled && slices.ContainsFunc(t.record.Members(), func(m store.SetMember) bool {
		return m.Kind == "" && podview.IsLost(t.dirs.Pod(m.Namespace, m.Name))
	}) {
		t.record.Boot = "" // as after a restart of the machine: the user's last login has ended, or processes were killed
	}
	var now *source
	for {
		var found *Found
		if now != nil {
			found = &now.Found
		}
		var err error
		switch step := decide(t.record, store.BootID(), found, t.rules()); step {
		case StepReturn:
			if err := t.finish(ctx); err != nil {
				t.unfinished = err
				report.Print(t.env.ErrOut, err)
			}
		case StepStart:
			t.start(ctx)
		case StepLook:
			now, err = t.look(ctx)
		case StepTry:
			if now.Fetched {
				return step, t.try(ctx, now)
			}
			now, err = t.read()
		case StepOlder:
			return step, report.New(report.Failure, "--allow-older applies it", "set %s is not changed: the artifact was made at %s, the one that runs later, at %s", t.Name, timeText(now.Created), timeText(t.record.Current.Created))
		case StepRejected:
			t.rejected = t.record.RejectOf(now.Digest, now.Inputs)
			return step, t.unfinished
		default:
			return step, t.unfinished
		}
		if err != nil {
			return StepLook, err
		}
	}
}

// rules returns the user's rules, and that a way back that has failed is not tried again by this process.
func (t *Transaction) rules() Rules {
	r := t.Rules
	r.Forward = t.unfinished != nil
	return r
}

func timeText(at time.Time) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return at.UTC().Format(time.RFC3339)
}

// look finds the digest of the source's version. It reads the manifests only if no registry tells the digest.
func (t *Transaction) look(ctx context.Context) (*source, error) {
	digest, ok, err := t.remoteDigest(ctx)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return t.read()
	}
	s := &source{Found: Found{Digest: digest, Signed: true}}
	s.Inputs, err = t.inputs()
	return s, err
}

// try changes the set to a version of its source.
func (t *Transaction) try(ctx context.Context, s *source) error {
	next, release, err := t.resolve(ctx, s)
	if err != nil {
		return fmt.Errorf("%s is not changed: %w", t.title(), err)
	}
	defer release()
	if t.record.Current != nil && t.record.Current.ID == next.ID {
		return t.again(ctx, next)
	}
	return t.explain(t.change(ctx, next, store.SetApplied))
}

// explain returns the error of a change with what the user can do.
func (t *Transaction) explain(err error) error {
	if !errors.As(err, new(*WentBack)) {
		return err
	}
	return report.New(report.Failure, "podrun follow history "+t.Name+" shows it; it is tried again when it changes, with podrun follow --retry, or by podrun apply --atomic", "%s: %w", t.title(), err)
}

// change changes the set to a version. If that fails, the set goes back to the current one.
func (t *Transaction) change(ctx context.Context, next *version, result store.SetResult) error {
	run, err := t.prepare(ctx, next)
	if err != nil {
		return fmt.Errorf("%s is not changed: %w", t.title(), err)
	}
	defer run.Release()
	if err := t.dirs.WriteSetManifests(t.Name, next.ID, next.text); err != nil {
		return err
	}
	members := next.Members
	if left := t.record.Next; left != nil { // a way back from it has failed
		next.Members = slices.Concat(members, left.Members)
	}
	t.record.State, t.record.Next, t.record.Source = store.SetTrying, next.SetVersion, t.sourceName()
	if err := t.dirs.WriteSet(t.Name, t.record); err != nil {
		return err
	}
	if err := t.carryOut(ctx, run, t.Timeout, t.Stable); err != nil {
		// Its pods may end before this process has its signal.
		if down, _ := systemd.ShuttingDown(context.WithoutCancel(ctx)); down || ctx.Err() != nil {
			err = errInterrupted
		}
		return t.goBack(context.WithoutCancel(ctx), err, result)
	}
	next.Members = members
	change := changeTo(next.SetVersion, result)
	if t.record.Current != nil {
		change.Former = t.record.Current.Digest
	}
	t.record.Accept(next.SetVersion)
	if result == store.SetRolledBack {
		t.record.Reject(t.record.Current, next.SetVersion, "it was rolled back", change.At)
	}
	t.record.Former, t.record.Current, t.record.Next = t.record.Current, next.SetVersion, nil
	t.record.Interrupted = store.SetInterrupted{} // the version was not the cause
	return t.settle(change, true)
}

// settle records the end of a change, and with retag moves the names of images.
func (t *Transaction) settle(change store.SetChange, retag bool) error {
	t.record.State, t.record.Boot, t.record.Next, t.record.Reason = store.SetSettled, store.BootID(), nil, ""
	if t.record.Current != nil && retag {
		t.record.Retag = t.record.Current.Pins
	}
	t.record.AddHistory(change)
	if err := t.dirs.WriteSet(t.Name, t.record); err != nil {
		return err
	}
	if err := t.retag(); err != nil {
		return err
	}
	t.report(change)
	return t.dirs.PruneSetManifests(t.Name, t.record)
}

// report posts how a change has ended. A report that fails changes nothing in the set.
func (t *Transaction) report(change store.SetChange) {
	if t.record.Report.URL == "" {
		return
	}
	webhook, err := setreport.New(t.record.Report)
	if err == nil {
		err = webhook.Post(context.Background(), t.Name, change) // an interrupted change is reported, too
	}
	if err != nil {
		t.env.Warn(err)
	}
}

func changeTo(v *store.SetVersion, result store.SetResult) store.SetChange {
	return store.SetChange{At: time.Now().UTC(), Result: result, Digest: v.Digest, Revision: v.Revision, Version: v.Version}
}

// again applies the current version again, and waits for it. If another artifact has the same manifests, it is the current
// version from now on: the next look finds it unchanged.
func (t *Transaction) again(ctx context.Context, v *version) error {
	run, err := t.prepare(ctx, v)
	if err != nil {
		return err
	}
	defer run.Release()
	if err := t.carryOut(ctx, run, t.Timeout, 0); err != nil {
		return err
	}
	if v.Digest == t.record.Current.Digest && v.Inputs == t.record.Current.Inputs && t.record.State == store.SetSettled {
		return nil
	}
	t.record.Accept(v.SetVersion)
	change := changeTo(v.SetVersion, store.SetApplied)
	change.Former = t.record.Current.Digest
	t.record.Current = v.SetVersion
	return t.settle(change, true)
}

// start starts the current version after a restart of the machine. It does not wait until the pods are ready, and reports
// what cannot be started: the newest version may be better.
func (t *Transaction) start(ctx context.Context) {
	err := t.startCurrent(ctx)
	t.record.Boot = store.BootID() // if it is not on disk, the next run starts the set again
	if err == nil {
		err = t.dirs.WriteSet(t.Name, t.record)
	}
	if err != nil {
		t.unfinished = err
		report.Print(t.env.ErrOut, err)
	}
}

func (t *Transaction) startCurrent(ctx context.Context) error {
	current, err := readVersion(t.dirs, t.Name, t.record.Current)
	if err != nil {
		return err
	}
	run, err := t.prepare(ctx, current)
	if err != nil {
		return err
	}
	defer run.Release()
	within, cancel := context.WithTimeout(ctx, max(t.Timeout, backTime)) // a pod may wait for another that is never ready
	defer cancel()
	return t.apply(within, run)
}
