package host

import (
	"fmt"
	"strings"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// cgroupPlace is the cgroup of a pod that would be started now.
type cgroupPlace struct {
	delegation.Subtree
	how string // how it gets there, as the end of a sentence
}

func findCgroupPlace() (cgroupPlace, error) {
	s, err := delegation.Preview()
	if err != nil {
		return cgroupPlace{}, err
	}
	if current, alone, _ := delegation.Own(); alone && current.Path == s.Path {
		return cgroupPlace{s, "in the cgroup of the unit that starts it, " + s.Path}, nil
	}
	if m, ok := delegation.FindManager(); ok && m.Cgroup == s.Path {
		return cgroupPlace{s, "in a scope of its own from systemd, below " + s.Path}, nil
	}
	return cgroupPlace{s, "below " + s.Path}, nil
}

// limits checks whether pods' limits can be enforced, and where.
func (v prober) limits() Finding {
	p, err := v.limit()
	if err != nil {
		hint := report.Hint(err)
		if v.uid != 0 && v.systemd() && v.exists(delegation.Mount+"/cgroup.controllers") && !v.exists(v.ownRuntime()+"/systemd/private") {
			hint = fmt.Sprintf("let systemd run for %s: log in with ssh instead of su, or as root: loginctl enable-linger %[1]s", v.name())
		}
		return warningFinding("limits are not enforced: "+err.Error()+"; "+delegation.ProcessLimitNote(v.uid == 0), hint)
	}
	if err := p.Lacks("cpu", "memory", "pids"); err != nil {
		detail := "some limits are not enforced: " + err.Error() + "; enforced: " + strings.Join(p.Controllers, ", ")
		if !p.Has("pids") {
			detail += "; " + delegation.ProcessLimitNote(v.uid == 0)
		}
		return warningFinding(detail, report.Hint(err))
	}
	return okFinding("limits are enforced (" + strings.Join(p.Controllers, ", ") + "); a pod lives " + p.how)
}

// memoryController checks whether the kernel can count the memory of a cgroup: on some boards it is
// disabled.
func (v prober) memoryController() Finding {
	if err := delegation.MemoryDisabled(v.root); err != nil {
		return warningFinding(err.Error()+": no memory limit can be enforced, not even by root", report.Hint(err))
	}
	return okFinding("the kernel counts memory")
}

// cgroupFeatures checks for the files that kill a cgroup as a whole, also on OOM. They are in every
// cgroup except the root of the hierarchy.
func (v prober) cgroupFeatures() Finding {
	s, err := v.limit()
	if err != nil || s.Path == delegation.Mount && !v.exists(delegation.Mount+"/cgroup.type") {
		return okFinding("not applicable: pods have no cgroup")
	}
	var lacks []string
	for _, file := range []string{"cgroup.kill", "cgroup.freeze", "memory.oom.group", "memory.peak", "cpu.pressure"} {
		if file[:6] == "memory" && !s.Has("memory") {
			continue
		}
		if !v.exists(s.Path + "/" + file) {
			lacks = append(lacks, file)
		}
	}
	if len(lacks) == 1 && lacks[0] == "cpu.pressure" {
		return noteFinding("the kernel does not measure pressure (PSI)", "to see it, add psi=1 to the kernel command line and reboot")
	}
	if lacks != nil {
		return noteFinding("cgroups here have no "+strings.Join(lacks, ", "), "no action is required; Linux 5.19 or later has them all")
	}
	return okFinding("cgroup.kill, freezing, OOM groups and pressure are available")
}
