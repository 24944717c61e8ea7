package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

// starters measure how long one container takes until a program in it prints the time (c/stamp.c):
// podrun in several ways (startpods.go), crun with its own start, floor (c/floor.c) without. tools
// has stamp and floor.
type starters struct {
	user  *account
	ours  *podrun
	tools string
	lower string // the image's root file system
	work  string
	crun  string // the reason why it is missing, or ""
}

func newStarters(b *bench) (*starters, error) {
	s := &starters{user: b.user, ours: b.ours, tools: b.tools, lower: filepath.Join(b.work, "lower"), work: b.user.runtime(filepath.Join(b.work, "start"))}
	for _, dir := range []string{s.lower, s.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(b.user.uid), int(b.user.gid)); err != nil {
			return nil, err
		}
	}
	if _, err := timed(b.user.command(nil, "tar", "-xf", b.rootfs, "-C", s.lower)); err != nil {
		return nil, err
	}
	if err := s.bundle(); err != nil {
		s.crun = err.Error()
	}
	return s, nil
}

// measureStarts starts containers in turns.
func (b *bench) measureStarts(r *report) error {
	if b.tools == "" {
		return nil
	}
	s, err := newStarters(b)
	if err != nil {
		return err
	}
	times := map[string][]time.Duration{}
	if err := measure.Rounds("bench: starts", 0, b.rounds, func(round int) error {
		all, err := s.once()
		if err != nil || round == 0 { // the first one warms up
			return err
		}
		for key, list := range all {
			times[key] = append(times[key], list...)
		}
		return nil
	}); err != nil {
		return err
	}
	if s.crun != "" {
		fmt.Fprintln(os.Stderr, "bench: no figures of crun:", s.crun)
	}
	r.Starts = map[string]summary{}
	for name, list := range times {
		r.Starts[name] = summarise(list)
	}
	return nil
}

// once starts containers of podrun, and as many with floor and crun.
func (s *starters) once() (map[string][]time.Duration, error) {
	times, err := s.podrun()
	if err != nil {
		return nil, err
	}
	for range stamps - 1 {
		floor, err := s.span(filepath.Join(s.tools, "floor"), s.lower, s.work, "/bin/stamp")
		if err != nil {
			return nil, fmt.Errorf("floor: %w", err)
		}
		times["floor"] = append(times["floor"], floor)
		if s.crun != "" {
			continue
		}
		crun, err := s.span("unshare", "--map-root-user", "--map-auto", "--mount", "sh", "-c", crunScript,
			filepath.Join(s.tools, "stamp"), s.work)
		if err != nil {
			s.crun = err.Error()
		} else {
			times["crun"] = append(times["crun"], crun)
		}
	}
	return times, nil
}

// crunScript: crun refuses mixed cgroup hierarchies, unless it does not see them.
const crunScript = `[ ! -d /sys/fs/cgroup/unified ] || mount -t tmpfs x /sys/fs/cgroup/unified
cd "$1" && exec "$0" crun --cgroup-manager=disabled --root "$1/state" run -b "$1" bench-$$`

// bundle writes crun's configuration: a container in the caller's network and user namespaces.
func (s *starters) bundle() error {
	if _, err := timed(s.user.command(nil, "sh", "-c", `cd "$0" && crun spec`, s.work)); err != nil {
		return err
	}
	path := filepath.Join(s.work, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]any
	if err := json.Unmarshal(b, &spec); err != nil {
		return err
	}
	spec["root"] = map[string]any{"path": s.lower, "readonly": true}
	if p, ok := spec["process"].(map[string]any); ok {
		p["args"], p["terminal"] = []string{"/bin/stamp"}, false
	}
	if l, ok := spec["linux"].(map[string]any); ok {
		l["namespaces"] = []map[string]string{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}}
		delete(l, "resources")
	}
	if b, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// span runs a command that stamps twice, and returns the difference.
func (s *starters) span(name string, args ...string) (time.Duration, error) {
	cmd := s.user.command([]string{"XDG_RUNTIME_DIR=" + s.work}, name, args...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, output)
	}
	list, err := stampsIn(string(output))
	if err == nil && len(list) != 2 {
		err = fmt.Errorf("%s stamped %d times", name, len(list))
	}
	if err != nil {
		return 0, err
	}
	return list[1] - list[0], nil
}
