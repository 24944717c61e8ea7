package ui

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podevents"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/webui"
)

// readPause is the least interval between two reads of all pods for a page.
const readPause = 250 * time.Millisecond

// pageSource provides the contents of the page: what get, image ls, follow ls, events, top and logs print, by the
// same functions. It only reads files, so it wakes no supervisor that hibernates.
type pageSource struct {
	dirs   store.Dirs
	images *image.Store
	quiet  *cmdutil.Env // discards messages, which are meant for the output of a command

	lives *dirwatch.LivenessWatcher

	mu  sync.Mutex
	use []podstats.Usage // of the last sample
}

func newPageSource(dirs store.Dirs) (*pageSource, error) {
	images, err := cmdutil.OpenImages(dirs)
	if err != nil {
		return nil, err
	}
	quiet := &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard}
	return &pageSource{dirs: dirs, images: images, quiet: quiet, lives: dirwatch.NewLivenessWatcher(dirs)}, nil
}

// podRow is a pod on the page: its row in ps, and its object in get -o json.
type podRow struct {
	Ready    string `json:"ready"`
	Status   string `json:"status"`
	Restarts string `json:"restarts"`
	Object   any    `json:"object"`
}

// podTable is the page's kind for pods.
const podTable = "pods"

// Watch calls onChange with all objects, whenever get -w would read pods, and when other objects or images
// change.
func (s *pageSource) Watch(ctx context.Context, onChange func(all []webui.Object, problem string)) {
	report := func() (bool, error) {
		onChange(s.read())
		return true, sleep.For(ctx, readPause)
	}
	for ctx.Err() == nil {
		if err := dirwatch.While(ctx, s.watched, s.lives.Changed, report); err != nil && ctx.Err() == nil {
			onChange(nil, err.Error())
			sleep.For(ctx, podstats.TopInterval)
		}
	}
}

// watched returns the directories in which what the page shows changes.
func (s *pageSource) watched() ([]string, error) {
	pods, err := printers.WatchedDirs(s.dirs, nil, &printers.PrintOptions{All: true})
	if err != nil {
		return nil, err
	}
	objects, err := s.dirs.ObjectDirs(tableKinds()...)
	if err != nil {
		return nil, err
	}
	sets, err := s.dirs.SetDirs()
	if err != nil {
		return nil, err
	}
	return slices.Concat(pods, objects, sets, s.images.WatchDirs()), nil
}

// collection is what the page shows, and what cannot be read.
type collection struct {
	all      []webui.Object
	problems []string
}

func (c *collection) add(kind, key string, v any) {
	if text, err := json.Marshal(v); c.check(err) {
		c.all = append(c.all, webui.Object{Kind: kind, Key: key, JSON: text})
	}
}

// check reports whether err is nil. It adds an error to the problems.
func (c *collection) check(err error) bool {
	if err != nil {
		c.problems = append(c.problems, err.Error())
	}
	return err == nil
}

// read reads everything. It returns what it cannot read as problem, next to the rest.
func (s *pageSource) read() (all []webui.Object, problem string) {
	var c collection
	c.check(s.lives.Snapshot())
	c.addPods(s)
	c.addEvents(s)
	c.addTables(s)
	c.addSets(s)
	c.addImages(s)
	return c.all, strings.Join(c.problems, "; ")
}

func (c *collection) addPods(s *pageSource) {
	l, err := printers.ListPods(s.dirs, nil, &printers.PrintOptions{All: true})
	c.check(err)
	if l == nil {
		return
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		object, err := e.Object()
		if !c.check(err) {
			continue
		}
		row, err := e.Row(false, time.Now())
		if !c.check(err) {
			continue
		}
		count, _, _ := strings.Cut(row[3], " (") // the page computes the elapsed time itself
		c.add(podTable, e.Key(), podRow{row[1], row[2], count, object})
	}
}

func (c *collection) addEvents(s *pageSource) {
	view := &podevents.View{Env: s.quiet, Dirs: s.dirs, AllNamespaces: true}
	pods, err := view.Pods()
	c.check(err)
	for _, p := range pods { // a pod that cannot be read does not hide the others
		list, err := view.Read([]store.Pod{p})
		c.check(err)
		for _, e := range list {
			c.add("events", e.Namespace+"/"+e.Name, e)
		}
	}
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
