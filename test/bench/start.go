package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// starters measure how long one container takes until a program in it prints the time (c/stamp.c):
// podrun in several ways (startpods.go), crun with its own start, floor (c/floor.c) without. tools
// has stamp and floor.
type starters struct {
	who   *account
	ours  *podrun
	tools string
	lower string // the image's root file system
	work  string
	crun  string // the reason why it is missing, or ""
}

func newStarters(who *account, ours *podrun, tools, rootfs, work string) (*starters, error) {
	s := &starters{who: who, ours: ours, tools: tools, lower: filepath.Join(work, "lower"), work: who.runtime(filepath.Join(work, "start"))}
	for _, dir := range []string{s.lower, s.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(who.uid), int(who.gid)); err != nil {
			return nil, err
		}
	}
	if _, err := timed(who.command(nil, "tar", "-xf", rootfs, "-C", s.lower)); err != nil {
		return nil, err
	}
	if err := s.bundle(); err != nil {
		s.crun = err.Error()
	}
	return s, nil
}

// measureStarts starts containers in turns.
func (s *starters) measureStarts(rounds int) (map[string]summary, error) {
	times := map[string][]time.Duration{}
	for round := range rounds + 1 {
		mine, err := s.podrun()
		if err != nil {
			return nil, err
		}
		for range stamps - 1 {
			floor, err := s.span(filepath.Join(s.tools, "floor"), s.lower, s.work, "/bin/stamp")
			if err != nil {
				return nil, fmt.Errorf("floor: %w", err)
			}
			if round > 0 {
				times["floor"] = append(times["floor"], floor)
			}
			if s.crun != "" {
				continue
			}
			crun, err := s.span("unshare", "--map-root-user", "--map-auto", "--mount", "sh", "-c", crunScript,
				filepath.Join(s.tools, "stamp"), s.work)
			if err != nil {
				s.crun = err.Error()
			} else if round > 0 {
				times["crun"] = append(times["crun"], crun)
			}
		}
		for key, list := range mine {
			if round > 0 {
				times[key] = append(times[key], list...)
			}
		}
	}
	if s.crun != "" {
		fmt.Fprintln(os.Stderr, "bench: no figures of crun:", s.crun)
	}
	all := map[string]summary{}
	for name, list := range times {
		all[name] = summarise(list)
	}
	return all, nil
}

// crunScript: crun refuses mixed cgroup hierarchies, unless it does not see them.
const crunScript = `[ ! -d /sys/fs/cgroup/unified ] || mount -t tmpfs x /sys/fs/cgroup/unified
cd "$1" && exec "$0" crun --cgroup-manager=disabled --root "$1/state" run -b "$1" bench-$$`

// bundle writes crun's configuration: a container in the caller's network and user namespaces.
func (s *starters) bundle() error {
	if _, err := timed(s.who.command(nil, "sh", "-c", `cd "$0" && crun spec`, s.work)); err != nil {
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
	cmd := s.who.command([]string{"XDG_RUNTIME_DIR=" + s.work}, name, args...)
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
