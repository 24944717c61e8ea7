// Package filesync copies files of the host into running containers when they change, restarts the containers, or has
// their images built: the inner loop of a developer.
package filesync

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/treetar"
	"github.com/podrun/podrun/internal/wire"
)

// Rule is a rule for one pod.
type Rule struct {
	api.SyncRule           // its Path is absolute
	Pod          store.Pod // it may be replaced meanwhile
	filter       *filter
}

// NewRules returns rules for a pod. Paths are relative to dir. A path that does not exist is an error.
func NewRules(p store.Pod, rules []api.SyncRule, dir string) ([]Rule, error) {
	var list []Rule
	for _, r := range rules {
		if !filepath.IsAbs(r.Path) {
			r.Path = filepath.Join(dir, r.Path)
		}
		full, err := filepath.Abs(r.Path)
		if err == nil {
			full, err = filepath.EvalSymlinks(full) // changes are not seen through a link
		}
		if err != nil {
			return nil, report.New(report.Usage, "", "cannot watch files for pod %s: %w", p.Name, err)
		}
		if r.Path = full; r.Target != "" {
			r.Target = path.Clean(r.Target)
		}
		chosen, err := newFilter(r)
		if err != nil {
			return nil, report.New(report.Usage, "", "cannot watch %s for pod %s: %w", full, p.Name, err)
		}
		list = append(list, Rule{r, p, chosen})
	}
	return list, nil
}

// Run carries out rules until ctx ends. rebuild builds the image of a pod and replaces the pod.
func Run(ctx context.Context, env *cmdutil.Env, rules []Rule, rebuild func(context.Context, store.Pod) error) {
	var all sync.WaitGroup
	for _, r := range rules {
		all.Go(func() { newWatch(env, r, rebuild).run(ctx) })
	}
	all.Wait()
}

// watch carries out one rule.
type watch struct {
	Rule
	env     *cmdutil.Env
	rebuild func(context.Context, store.Pod) error
	dir     string // that is watched
	only    string // the only file in it, or ""

	pending dirwatch.Changes // not carried out yet
	all     bool             // the container has none of the files yet
	uid     string           // of the pod that has them
	failure string           // the last error, which is reported once
}

func newWatch(env *cmdutil.Env, r Rule, rebuild func(context.Context, store.Pod) error) *watch {
	w := &watch{Rule: r, env: env, rebuild: rebuild, dir: r.Path, all: r.InitialSync}
	if st, err := os.Stat(r.Path); err == nil && !st.IsDir() {
		w.dir, w.only = filepath.Split(r.Path)
	}
	return w
}

// retryTime is how long after a failure a rule is tried again, and how often its pod is compared with the pod that has the
// files.
const retryTime = 500 * time.Millisecond

func (w *watch) run(ctx context.Context) {
	tree := dirwatch.WatchTree(w.dir, w.skips)
	defer tree.Close()
	for ctx.Err() == nil {
		soon, cancel := context.WithTimeout(ctx, retryTime)
		c := tree.Next(soon)
		cancel()
		w.pending.Written, w.pending.Removed = append(w.pending.Written, c.Written...), append(w.pending.Removed, c.Removed...)
		plan := w.due(tree)
		if plan == nil {
			continue
		}
		switch err := w.act(ctx, plan); {
		case ctx.Err() != nil:
		case err != nil && err.Error() != w.failure:
			w.failure = err.Error()
			report.Print(w.env.ErrOut, err)
			fallthrough
		case err != nil:
			w.all = w.Copies()
		default:
			w.failure, w.all, w.pending = "", false, dirwatch.Changes{}
		}
	}
}

// due returns the pod's Plan if there are changes and the pod runs, otherwise nil. A new pod of the name gets all files,
// because it has none of the earlier changes.
func (w *watch) due(tree *dirwatch.Tree) *pod.Plan {
	plan, err := w.Pod.Plan()
	if err != nil {
		return nil
	}
	if w.uid != "" && w.uid != plan.UID && w.Copies() {
		w.all = true
	}
	w.uid = plan.UID
	if w.all {
		w.pending.Written = tree.All()
	}
	if len(w.pending.Written)+len(w.pending.Removed) == 0 || !w.Pod.Alive() {
		return nil
	}
	return plan
}

// act carries out the rule's action for the pending changes.
func (w *watch) act(ctx context.Context, plan *pod.Plan) error {
	if w.Action == api.SyncRebuild {
		fmt.Fprintf(w.env.ErrOut, "podrun: pod/%s: %s has changed\n", w.Pod.Name, w.changed())
		return w.rebuild(ctx, w.Pod)
	}
	container, err := podclient.ChooseContainer(w.env.ErrOut, w.Pod, plan, w.Container)
	if err != nil {
		return err
	}
	if w.Copies() {
		if err := w.copy(ctx, container.Name); err != nil {
			return err
		}
		fmt.Fprintf(w.env.ErrOut, "podrun: pod/%s: %s copied\n", w.Pod.Name, w.changed())
	}
	if w.Action == api.SyncFiles {
		return nil
	}
	if _, err := podup.Restart(ctx, w.Pod, []string{container.Name}, nil); err != nil {
		return err
	}
	fmt.Fprintf(w.env.ErrOut, "podrun: pod/%s: container %s restarted\n", w.Pod.Name, container.Name)
	return nil
}

// changed names the pending changes for a message.
func (w *watch) changed() string {
	all := append(w.pending.Written[:len(w.pending.Written):len(w.pending.Written)], w.pending.Removed...)
	if len(all) == 1 {
		return report.Escape(path.Join(filepath.Base(w.dir), all[0]))
	}
	return fmt.Sprintf("%d files of %s", len(all), report.Escape(w.Path))
}

// copy copies the pending changes.
func (w *watch) copy(ctx context.Context, container string) error {
	root, err := treetar.OpenForeign(w.dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", w.dir, treetar.PathErrorReason(err))
	}
	defer root.Close()
	target, as := w.Target, func(name string) string { return name }
	if w.only != "" {
		base := path.Base(w.Target)
		target, as = path.Dir(w.Target), func(string) string { return base }
	}
	skipped := func(text string) { fmt.Fprintf(w.env.ErrOut, "podrun: skipped %s\n", report.Escape(text)) }
	req := &wire.CopyRequest{Container: container, Path: target, In: true, Tar: true, Changes: true}
	left, err := podclient.Copy(ctx, w.Pod, req, func(ctx context.Context, stream *os.File) error {
		return root.PackChanges(ctx, stream, w.pending.Written, w.pending.Removed, as, skipped)
	})
	for _, text := range left {
		skipped(text)
	}
	return err
}

// skips reports whether a path below the directory is not watched.
func (w *watch) skips(name string, dir bool) bool {
	if w.only != "" {
		return name != w.only
	}
	return w.filter.skips(name, dir)
}

// filter chooses the files of a directory that are watched.
type filter struct {
	ignore, include *patternmatcher.PatternMatcher
	exceptions      bool // an ignored directory may contain files that are not ignored
}

// ignored are the files of git, and the temporary files of editors (docker compose: pkg/watch/ephemeral.go).
var ignored = []string{".git", "**/.git", "**/*~", "**/*.swp", "**/*.swx", "**/*.swo", "**/4913", "**/.#*", "**/*___jb_*___", "**/.DS_Store"}

// newFilter returns the filter of a rule. A .dockerignore in the rule's directory counts, too.
func newFilter(r api.SyncRule) (*filter, error) {
	patterns := append(ignored[:len(ignored):len(ignored)], r.Ignore...)
	if text, err := os.ReadFile(filepath.Join(r.Path, ".dockerignore")); err == nil {
		more, err := ignorefile.ReadAll(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read .dockerignore: %w", err)
		}
		patterns = append(patterns, more...)
	}
	var err error
	f := &filter{}
	if f.ignore, err = patternmatcher.New(patterns); err != nil {
		return nil, fmt.Errorf("ignore: %w", err)
	}
	f.exceptions = f.ignore.Exclusions()
	if len(r.Include) > 0 {
		if f.include, err = patternmatcher.New(r.Include); err != nil {
			return nil, fmt.Errorf("include: %w", err)
		}
	}
	return f, nil
}

// skips reports whether a file, or a directory with everything in it, is not watched.
func (f *filter) skips(name string, dir bool) bool {
	if strings.HasPrefix(path.Base(name), treetar.Whiteout) { // it would remove another file
		return true
	}
	if found, err := f.ignore.MatchesOrParentMatches(name); err == nil && found {
		return !dir || !f.exceptions
	}
	if dir || f.include == nil {
		return false
	}
	found, err := f.include.MatchesOrParentMatches(name)
	return err == nil && !found
}
