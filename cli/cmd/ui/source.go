package ui

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podevents"
	"github.com/podrun/podrun/cli/internal/podstats"
	"github.com/podrun/podrun/cli/internal/printers"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/webui"
	"github.com/podrun/podrun/pod"
)

// lookPause is the least interval between two reads of all pods for a page.
const lookPause = 250 * time.Millisecond

// pageSource provides the contents of the page: those of get, events, top and logs, by the same
// functions. It only reads files, so it wakes no supervisor that hibernates.
type pageSource struct {
	dirs  store.Dirs
	quiet *cmdutil.Env // discards messages, which are meant for the output of a command

	lives *dirwatch.LivenessWatcher

	mu  sync.Mutex
	use []podstats.Usage // of the last sample
}

func newPageSource(dirs store.Dirs) *pageSource {
	return &pageSource{dirs: dirs, quiet: &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard}, lives: dirwatch.NewLivenessWatcher(dirs)}
}

// podRow is a pod on the page: its row in ps, and its object in get -o json.
type podRow struct {
	Ready    string `json:"ready"`
	Status   string `json:"status"`
	Restarts string `json:"restarts"`
	Object   any    `json:"object"`
}

// Watch calls seen with all pods and events, whenever get -w would read them.
func (s *pageSource) Watch(ctx context.Context, seen func(all []webui.Object, problem string)) {
	options := &printers.PrintOptions{All: true}
	watched := func() ([]string, error) { return printers.WatchedDirs(s.dirs, nil, options) }
	look := func() (bool, error) {
		seen(s.look(options))
		return true, sleep.For(ctx, lookPause)
	}
	for ctx.Err() == nil {
		if err := dirwatch.While(ctx, watched, s.lives.Changed, look); err != nil && ctx.Err() == nil {
			seen(nil, err.Error())
			sleep.For(ctx, podstats.TopInterval)
		}
	}
}

// look reads all pods and events. It returns what it cannot read as problem, next to the rest.
func (s *pageSource) look(options *printers.PrintOptions) (all []webui.Object, problem string) {
	var problems []string
	add := func(kind, key string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			problems = append(problems, err.Error())
			return
		}
		all = append(all, webui.Object{Kind: kind, Key: key, JSON: text})
	}
	if err := s.lives.Snapshot(); err != nil {
		problems = append(problems, err.Error())
	}
	l, err := printers.ListPods(s.dirs, nil, options)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if l == nil {
		return nil, strings.Join(problems, "; ")
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		object, err := e.Object()
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		row, err := e.Row(false, time.Now())
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		count, _, _ := strings.Cut(row[3], " (") // the page computes the elapsed time itself
		add("pods", e.Key(), podRow{row[1], row[2], count, object})
	}
	events := &podevents.View{Env: s.quiet, Dirs: s.dirs, AllNamespaces: true}
	pods, err := events.Pods()
	if err == nil {
		for _, p := range pods { // a pod that cannot be read does not hide the others
			list, err := events.Read([]store.Pod{p})
			if err != nil {
				problems = append(problems, err.Error())
			}
			for _, e := range list {
				add("events", e.Namespace+"/"+e.Name, e)
			}
		}
	}
	return all, strings.Join(problems, "; ")
}

// Use returns the values of top. It wakes Watch when pods have ended without writing a status.
func (s *pageSource) Use() ([]webui.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &podstats.View{Env: s.quiet, Dirs: s.dirs, AllNamespaces: true}
	now, err := v.Sample()
	if err != nil {
		return nil, err
	}
	uses := v.Rates(s.use, now)
	s.use = slices.Clone(now)
	var out []webui.Usage
	for i := range uses {
		u := &uses[i]
		out = append(out, webui.Usage{Key: u.Pod.Namespace + "/" + u.Pod.Name, CPU: u.CPU, Memory: u.Sample.Memory, Detail: u.JSON()})
	}
	s.lives.Check()
	return out, nil
}

// podAndPlan finds the pod and the containers of a request for logs.
func (s *pageSource) podAndPlan(of webui.LogRequest) (store.Pod, *pod.Plan, error) {
	p, err := resource.ExistingPod(s.dirs, of.Namespace, of.Pod)
	if err != nil {
		return p, nil, err
	}
	plan, err := p.Plan()
	if err == nil && of.Container != "" {
		_, err = podclient.Named(plan, of.Container)
	}
	return p, plan, err
}
