package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// podUse is what is used by a pod, or of one of its containers, at a moment.
type podUse struct {
	place  store.Pod
	name   string // of the container; "" for the pod
	sample stats.Sample
	cpu    *int64 // thousandths of a processor, since the sample before
	added  bool   // there is no cgroup: processes were added up
	inside []podUse
}

func (u *podUse) key() string { return u.place.Namespace + "/" + u.place.Name + "/" + u.name }

// look takes samples of all pods, without asking any supervisor: one that dozes goes
// on dozing.
func (v *topView) look() ([]podUse, error) {
	places, err := v.places()
	if err != nil {
		return nil, err
	}
	var processes *stats.Processes
	var uses []podUse
	for _, p := range places {
		st, err := p.Status()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is only just being made, or has just been removed
		}
		if err != nil {
			return nil, err
		}
		u := podUse{place: p}
		if st.Cgroup != "" {
			err = v.byCgroup(&u, st)
		} else {
			if processes == nil {
				if processes, err = stats.ReadProcesses(); err != nil {
					return nil, err
				}
			}
			v.byProcesses(&u, st, processes)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return nil, err
		}
		uses = append(uses, u)
	}
	return uses, nil
}

// started are the containers of a pod that run, with their restart counts.
func started(st *pod.Status) []pod.ContainerStatus {
	all := slices.Concat(st.InitContainers, st.Containers)
	return slices.DeleteFunc(all, func(c pod.ContainerStatus) bool { return c.State.Running == nil })
}

func (v *topView) byCgroup(u *podUse, st *pod.Status) (err error) {
	if u.sample, err = stats.Read(st.Cgroup); err != nil {
		return err
	}
	for _, c := range started(st) {
		s, err := stats.Read(filepath.Join(st.Cgroup, c.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		u.inside = append(u.inside, podUse{place: u.place, name: c.Name, sample: s})
	}
	return nil
}

// byProcesses adds up the processes of a pod that has no cgroup of its own.
func (v *topView) byProcesses(u *podUse, st *pod.Status, all *stats.Processes) {
	u.added = true
	v.say("pod " + u.place.Name + " has no cgroup of its own, so its processes are added up, without disk and pressure; podrun doctor says why")
	keeper, ok := all.Find(func(args []string) bool { return podinit.IsPodProcess(args, u.place) })
	if !ok {
		return
	}
	var pids []int
	below := all.Below(keeper)
	for _, c := range started(st) {
		inner, err := u.place.InitPID(c.Name, c.RestartCount)
		if err != nil {
			continue // it has just ended
		}
		own := all.Inside(below, inner)
		pids = append(pids, own...)
		u.inside = append(u.inside, podUse{place: u.place, name: c.Name, sample: all.Sum(own)})
	}
	u.sample = all.Sum(pids)
}

// rates works out the use of processors between two looks, and sorts.
func (v *topView) rates(before, after []podUse) []podUse {
	old := map[string]stats.Sample{}
	each := func(uses []podUse, do func(*podUse)) {
		for i := range uses {
			do(&uses[i])
			for j := range uses[i].inside {
				do(&uses[i].inside[j])
			}
		}
	}
	each(before, func(u *podUse) { old[u.key()] = u.sample })
	each(after, func(u *podUse) { u.cpu = stats.CPUBetween(old[u.key()], u.sample) })
	v.sort(after)
	for i := range after {
		v.sort(after[i].inside)
	}
	v.remark(after)
	return after
}

// sort sorts by what was asked for. What is equal stays in order: pods by name,
// containers as in the manifest.
func (v *topView) sort(uses []podUse) {
	of := func(u podUse) int64 {
		n := u.cpu
		if v.by == "memory" {
			n = u.sample.Memory
		}
		if n == nil {
			return -1
		}
		return *n
	}
	if v.by != "" {
		slices.SortStableFunc(uses, func(a, b podUse) int { return int(min(max(of(b)-of(a), -1), 1)) })
	}
}

// remark says, once, what the cgroups of the pods do not tell.
func (v *topView) remark(uses []podUse) {
	var missing []string
	for _, u := range uses {
		s := u.sample
		if u.added {
			continue // that was said
		}
		for _, m := range []struct {
			what   string
			absent bool
		}{
			{"memory", s.Memory == nil}, {"processes", s.Pids == nil}, {"disk", s.Read == nil}, {"pressure", s.Pressure.CPU == nil},
		} {
			if m.absent && !slices.Contains(missing, m.what) {
				missing = append(missing, m.what)
			}
		}
	}
	if missing != nil {
		v.say(strings.Join(missing, ", ") + ": not told by the cgroups of these pods, whose controllers are not all delegated or whose kernel does not measure it; podrun doctor says more")
	}
}
