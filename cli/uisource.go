package cli

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/webui"
	"github.com/podrun/podrun/pod"
)

// lookPause is the least between two looks at all pods for a page.
const lookPause = 250 * time.Millisecond

// pageSource is what the page of ui shows: what get, events, top and logs show, by the same
// functions. It reads files alone, so no pod that rests is woken.
type pageSource struct {
	dirs  store.Dirs
	quiet *front // says nothing: what it has to say is for one who reads the output of a command

	lives *lives

	mu  sync.Mutex
	use []podUse // of the last look
}

func newPageSource(dirs store.Dirs) *pageSource {
	return &pageSource{dirs: dirs, quiet: &front{out: io.Discard, err: io.Discard}, lives: newLives(dirs)}
}

// shownPod is a pod as the page has it: the line that ps shows, and the object of
// get -o json.
type shownPod struct {
	Ready    string `json:"ready"`
	Status   string `json:"status"`
	Restarts string `json:"restarts"`
	Object   any    `json:"object"`
}

// Watch tells of all pods and events, whenever get -w would look at them.
func (s *pageSource) Watch(ctx context.Context, seen func(all []webui.Object, problem string)) {
	wishes := &getWishes{all: true}
	watched := func() ([]string, error) { return podDirs(s.dirs, nil, wishes) }
	look := func() (bool, error) {
		seen(s.look(wishes))
		return true, remote.Pause(ctx, lookPause)
	}
	for ctx.Err() == nil {
		if err := whileWatching(ctx, watched, s.lives.poked, look); err != nil && ctx.Err() == nil {
			seen(nil, err.Error())
			remote.Pause(ctx, topInterval)
		}
	}
}

// look reads all pods and events. What cannot be read is said beside the rest.
func (s *pageSource) look(wishes *getWishes) (all []webui.Object, problem string) {
	var problems []string
	add := func(kind, key string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			problems = append(problems, err.Error())
			return
		}
		all = append(all, webui.Object{Kind: kind, Key: key, JSON: text})
	}
	if err := s.lives.note(); err != nil {
		problems = append(problems, err.Error())
	}
	l, err := listPods(s.dirs, nil, wishes)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if l == nil {
		return nil, strings.Join(problems, "; ")
	}
	for i := range l.entries {
		e := &l.entries[i]
		object, err := e.object()
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		row, err := e.row(false, time.Now())
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		count, _, _ := strings.Cut(row[3], " (") // how long ago is the page's to count
		add("pods", e.key(), shownPod{row[1], row[2], count, object})
	}
	events := &eventView{front: s.quiet, dirs: s.dirs, allNamespaces: true}
	places, err := events.places()
	if err == nil {
		for _, p := range places { // one that cannot be read takes nothing from the others
			list, err := events.read([]store.Pod{p})
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

// Use is what top shows, and wakes Watch when pods have ended without a word.
func (s *pageSource) Use() ([]webui.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &topView{front: s.quiet, dirs: s.dirs, allNamespaces: true, containers: true, said: map[string]bool{}}
	now, err := v.look()
	if err != nil {
		return nil, err
	}
	uses := v.rates(s.use, now)
	s.use = slices.Clone(now)
	var out []webui.Usage
	for i := range uses {
		u := &uses[i]
		out = append(out, webui.Usage{Key: u.place.Namespace + "/" + u.place.Name, CPU: u.cpu, Memory: u.sample.Memory, Detail: u.json()})
	}
	s.lives.check()
	return out, nil
}

// place finds the pod and the containers of which logs are asked.
func (s *pageSource) place(of webui.LogRequest) (store.Pod, *pod.Plan, error) {
	p, err := existing(s.dirs, of.Namespace, of.Pod)
	if err != nil {
		return p, nil, err
	}
	plan, err := p.Plan()
	if err == nil && of.Container != "" {
		_, err = remote.Named(plan, of.Container)
	}
	return p, plan, err
}
