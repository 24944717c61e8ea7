// Package podstats reads the resource usage of pods and containers from the kernel's files.
package podstats

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Usage is the resource usage of a pod, or of one of its containers, at one time.
type Usage struct {
	Pod        store.Pod
	Name       string // of the container; "" for the pod
	Sample     stats.Sample
	CPU        *int64 // thousandths of a processor, since the previous sample
	summed     bool   // summed over processes, because there is no cgroup
	Containers []Usage

	// CPUTotal is a counter of processor time: it decreases only when the container starts again. nil: not
	// known, as for a pod without a cgroup.
	CPUTotal *time.Duration
	Status   *pod.ContainerStatus // of a container

	findProcess func() (pid int, ok bool) // finds the first process of a container
	hostNetwork bool                      // of a pod
}

func (u *Usage) key() string { return u.Pod.Namespace + "/" + u.Pod.Name + "/" + u.Name }

// Network reads the interfaces of a pod; nil: not known, because no container runs. A pod in the host's
// network has none of its own.
func (u *Usage) Network() []stats.Interface {
	if u.hostNetwork {
		return nil
	}
	for _, c := range u.Containers {
		if pid, ok := c.findProcess(); ok {
			if all, err := stats.ReadNetwork(pid); err == nil { // else it has just ended
				return all
			}
		}
	}
	return nil
}

// Sample samples the usage of all pods. It does not connect to supervisors, so hibernating
// supervisors continue to hibernate. The error names every pod that cannot be read; the rest is returned too.
func (v *View) Sample() ([]Usage, error) {
	pods, err := v.pods()
	if err != nil {
		return nil, err
	}
	var processes *stats.Processes
	var uses []Usage
	var errs []error
	for _, p := range pods {
		st, err := p.Status()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being created, or was just removed
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		u := Usage{Pod: p, hostNetwork: st.Network == pod.NetworkHost}
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
		switch {
		case err == nil:
			uses = append(uses, u)
		case !errors.Is(err, fs.ErrNotExist): // else it has just ended
			errs = append(errs, err)
		}
	}
	return uses, errors.Join(errs...)
}

// runningContainers returns the running containers of a pod, with their restart counts.
func runningContainers(st *pod.Status) []pod.ContainerStatus {
	all := slices.Concat(st.InitContainers, st.Containers)
	return slices.DeleteFunc(all, func(c pod.ContainerStatus) bool { return c.State.Running == nil })
}

func (v *View) byCgroup(u *Usage, st *pod.Status) (err error) {
	if u.Sample, err = stats.Read(st.Cgroup); err != nil {
		return err
	}
	u.CPUTotal = u.Sample.CPU
	for _, c := range runningContainers(st) {
		dir := filepath.Join(st.Cgroup, c.Name)
		s, err := stats.Read(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		u.Containers = append(u.Containers, Usage{Pod: u.Pod, Name: c.Name, Sample: s, CPUTotal: s.CPU, Status: &c, findProcess: func() (int, bool) {
			inner, err := u.Pod.InitPID(c.Name, c.RestartCount)
			if err != nil {
				return 0, false
			}
			return stats.FindInCgroup(dir, inner)
		}})
	}
	return nil
}

// byProcesses sums the usage of the processes of a pod that has no cgroup of its own.
func (v *View) byProcesses(u *Usage, st *pod.Status, all *stats.Processes) {
	u.summed = true
	v.reportOnce("pod " + u.Pod.Name + " has no cgroup of its own, so podrun adds up its processes, without disk and pressure; podrun doctor shows why")
	podInit, ok := all.Find(func(args []string) bool { return podinit.IsPodProcess(args, u.Pod) })
	if !ok {
		return
	}
	var pids []int
	below := all.Below(podInit)
	for _, c := range runningContainers(st) {
		inner, err := u.Pod.InitPID(c.Name, c.RestartCount)
		if err != nil {
			continue // it has just ended
		}
		first, running := all.FindInner(below, inner)
		if !running {
			continue
		}
		inside := all.Inside(below, first)
		pids = append(pids, inside...)
		// Processes of exec are left out: their time is lost when they end.
		total := all.CPUTime(append(all.Below(first), first))
		u.Containers = append(u.Containers, Usage{Pod: u.Pod, Name: c.Name, Sample: all.Sum(inside), CPUTotal: &total, Status: &c, findProcess: func() (int, bool) { return first, true }})
	}
	u.Sample = all.Sum(pids)
}

// Rates computes the processor usage between two samples, and sorts.
func (v *View) Rates(before, after []Usage) []Usage {
	old := map[string]stats.Sample{}
	each := func(uses []Usage, do func(*Usage)) {
		for i := range uses {
			do(&uses[i])
			for j := range uses[i].Containers {
				do(&uses[i].Containers[j])
			}
		}
	}
	each(before, func(u *Usage) { old[u.key()] = u.Sample })
	each(after, func(u *Usage) { u.CPU = stats.CPUBetween(old[u.key()], u.Sample) })
	v.sort(after)
	for i := range after {
		v.sort(after[i].Containers)
	}
	v.reportMissing(after)
	return after
}

// sort sorts by the requested column. Equal entries keep their order: pods by name, containers as in the
// manifest.
func (v *View) sort(uses []Usage) {
	of := func(u Usage) int64 {
		n := u.CPU
		if v.By == "memory" {
			n = u.Sample.Memory
		}
		if n == nil {
			return -1
		}
		return *n
	}
	if v.By != "" {
		slices.SortStableFunc(uses, func(a, b Usage) int { return int(min(max(of(b)-of(a), -1), 1)) })
	}
}

// reportMissing reports, once, which values the cgroups of the pods do not have.
func (v *View) reportMissing(uses []Usage) {
	var missing []string
	for _, u := range uses {
		s := u.Sample
		if u.summed {
			continue // already reported
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
		v.reportOnce(strings.Join(missing, ", ") + ": not available: a controller is not delegated, or the kernel does not measure it; podrun doctor shows more")
	}
}

// View selects the pods to sample, and their order.
type View struct {
	Env           *cmdutil.Env
	Dirs          store.Dirs
	Words         []string
	Namespace     string
	AllNamespaces bool
	By            string          // cpu or memory, the highest first; "": by name
	reported      map[string]bool // remarks already printed
}

// pods returns the pods to sample: the named ones, or else those that run.
func (v *View) pods() ([]store.Pod, error) {
	if len(v.Words) == 0 {
		all, err := resource.ListPods(v.Dirs, v.Namespace, v.AllNamespaces)
		return slices.DeleteFunc(all, func(p store.Pod) bool { return !p.Alive() }), err
	}
	var pods []store.Pod
	for _, word := range v.Words {
		p, err := resource.ExistingPod(v.Dirs, v.Namespace, word)
		if err != nil {
			return nil, err
		}
		if !p.Alive() {
			return nil, report.New(report.Failure, "podrun ps lists the pods", "pod %s is not running: it uses nothing", p.Name)
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// reportOnce prints a remark to stderr once.
func (v *View) reportOnce(text string) {
	if !v.reported[text] {
		if v.reported == nil {
			v.reported = map[string]bool{}
		}
		v.reported[text] = true
		fmt.Fprintln(v.Env.ErrOut, "podrun: "+report.Escape(text))
	}
}

// TopInterval is the default interval between two samples that are printed.
const TopInterval = 2 * time.Second
