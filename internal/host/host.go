// Package host probes what this machine and this user can do, by feature and never by version. One
// table of probes serves the refusals of `up`, the report of `podrun doctor`, and the skips of
// tests.
//
// Reading and judging are separate: every probe reads below a root directory, so that a test can
// use one of its own. Package internal/nsprobe tries what can only be tried inside a pod's
// namespaces; its findings have the same form.
package host

import (
	"strings"
	"time"

	"github.com/podrun/podrun/internal/report"
)

// Level is the severity of a finding.
type Level string

// The levels, from the best to the worst.
const (
	OK      Level = "ok"      // no problem
	Note    Level = "note"    // pods run and lack nothing now; worth knowing
	Warning Level = "warning" // pods run, and something will be missing
	Failure Level = "failure" // no pod can run
)

// Finding is the result of one probe. Its JSON form is part of `podrun doctor -o json`.
type Finding struct {
	Name   string `json:"name"`   // name of the probe: "user namespaces"
	Level  Level  `json:"level"`  //
	Detail string `json:"detail"` // the result, one plain sentence without a full stop
	Hint   string `json:"hint"`   // what to type or change; "" exactly if the level is OK
}

// Fix is the command of a hint, which podrun doctor --fix offers to run.
type Fix struct {
	Command string // for sh -c
	Root    bool   // root has to run it
	Then    string // what remains to be done: "reboot"; "" for nothing
}

// Probe checks one thing.
type Probe struct {
	Name     string
	Required bool // no pod can run without an answer of the probe
	Run      func() Finding
}

// Names of the probes that other packages use.
const (
	UserNamespaces = "user namespaces"
	IDTools        = "id mapping tools"
	SubIDs         = "subordinate ids"
	Limits         = "resource limits"
	MappedIDs      = "ids of pods"
	Overlay        = "root file systems"
	Sandbox        = "sandbox"
	Network        = "network"
	Registries     = "registries"
)

// Timeout bounds the time of all probes together: one that hangs, on a network file system or a
// service, delays the caller no longer. A slow board takes a second.
const Timeout = 20 * time.Second

// Check runs the probes of this package and more, the cgroup probe first. It starts no program, changes
// nothing, and returns after at most Setup.Timeout.
func Check(s Setup, more ...Probe) []Finding {
	v := newProber(s)
	// This one runs before other probes start processes: these would count as foreign processes in
	// the cgroup that the caller may have to itself.
	p, err := v.limit()
	v.limit = func() (cgroupPlace, error) { return p, err }
	if s.AfterCgroupProbe != nil {
		s.AfterCgroupProbe()
	}
	within := s.Timeout
	if within == 0 {
		within = Timeout
	}
	return run(append(v.probes(), more...), within)
}

// run runs probes, all at once, and returns their findings in the same order within a timeout.
func run(probes []Probe, within time.Duration) []Finding {
	type answer struct {
		i int
		f Finding
	}
	answers := make(chan answer, len(probes))
	findings := make([]Finding, len(probes))
	for i, p := range probes {
		findings[i] = unanswered(p, within)
		go func() { answers <- answer{i, p.Run()} }()
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for range probes {
		select {
		case a := <-answers:
			a.f.Name = probes[a.i].Name
			findings[a.i] = a.f
		case <-timeout.C:
			return findings
		}
	}
	return findings
}

// unanswered returns the finding for a probe that has not answered.
func unanswered(p Probe, within time.Duration) Finding {
	f := Finding{Name: p.Name, Level: Warning, Detail: "no answer about the " + p.Name + " within " + within.String(),
		Hint: "look for a file system or a service that hangs: mount, dmesg, systemctl status"}
	if p.Required {
		f.Level = Failure
	}
	return f
}

// FirstFailure returns the first finding with which no pod can run as a *report.Error, or nil.
func FirstFailure(findings []Finding) error {
	for _, f := range findings {
		if f.Level == Failure {
			return report.New(report.Host, f.Hint, "podrun cannot run pods here: %s", f.Detail)
		}
	}
	return nil
}

// FindByName returns the finding of a probe.
func FindByName(findings []Finding, name string) (Finding, bool) {
	for _, f := range findings {
		if f.Name == name {
			return f, true
		}
	}
	return Finding{}, false
}

// Fix returns the command with which the hint begins: as root, or of the user with loginctl. It ends before an
// alternative and before what remains to be done. nil: the hint begins with advice.
func (f Finding) Fix() *Fix {
	command, root := strings.CutPrefix(f.Hint, "as root: ")
	if !root && !strings.HasPrefix(command, "loginctl ") {
		return nil
	}
	fix := &Fix{Root: root}
	for _, alternative := range []string{" (", "; in a container", "; until then", ", or "} {
		command, _, _ = strings.Cut(command, alternative)
	}
	fix.Command = command
	for _, before := range []string{", and ", "; then "} {
		if command, then, ok := strings.Cut(fix.Command, before); ok {
			fix.Command, fix.Then = command, then
		}
	}
	return fix
}

func okFinding(detail string) Finding { return Finding{Level: OK, Detail: detail} }
func noteFinding(detail, hint string) Finding {
	return Finding{Level: Note, Detail: detail, Hint: hint}
}
func warningFinding(detail, hint string) Finding {
	return Finding{Level: Warning, Detail: detail, Hint: hint}
}
func failureFinding(detail, hint string) Finding {
	return Finding{Level: Failure, Detail: detail, Hint: hint}
}

// probes returns every probe of this package, in the order of the report: the requirements of every
// pod come first, the user's settings before the machine's.
func (v prober) probes() []Probe {
	return []Probe{
		{"kernel", true, v.kernel},
		{"namespaces", true, v.namespaces},
		{UserNamespaces, true, v.userns},
		{"seccomp", true, v.seccomp},
		{"data directory", true, v.data},
		{"runtime directory", true, v.runtime},
		{IDTools, false, v.tools},
		{SubIDs, false, v.subids},
		{Limits, false, v.limits},
		{"memory controller", false, v.memoryController},
		{"cgroup features", false, v.cgroupFeatures},
		{"memory", false, v.memory},
		{"disk space", false, v.space},
		{"inodes", false, v.inodes},
		{"lingering", false, v.linger},
		{"clock", false, v.clock},
		{"tun device", false, v.tun},
	}
}
