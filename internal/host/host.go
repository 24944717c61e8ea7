// Package host probes what this machine and this user can do, by feature and
// never by version. One set of probes serves the refusals of the commands, the
// report for people, and the skips of tests.
//
// Reading and judging are apart: every probe reads below a root directory, so
// that a test can give it one of its own.
package host

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// Finding is the answer of one probe.
type Finding struct {
	Name   string // "user namespaces"
	OK     bool
	Fatal  bool   // no pod can run while it is not OK
	Detail string // what was found, one plain sentence without a full stop
	Cure   string // what to type or change, if it is not OK
}

// Check runs every probe, the fatal ones first. It starts no program; where user
// namespaces are in doubt it forks once.
func Check() []Finding {
	return probes(host())
}

// Refusal returns the first fatal finding that is not OK as a *report.Error, or
// nil.
func Refusal(findings []Finding) error {
	for _, f := range findings {
		if f.Fatal && !f.OK {
			return report.New(report.Internal, f.Cure, "podrun cannot run pods here: %s", f.Detail)
		}
	}
	return nil
}

// view is the machine as the probes see it.
type view struct {
	root string // "" or a fake root directory
	uid  int
	user string   // the name of uid; "" if it has none
	path []string // where programs are looked for

	fork  func() error                       // tries a user namespace for real
	tool  func(path string) (program, error) // looks at a program
	limit func() (delegation.Subtree, error) // finds the delegated cgroups
	uname func() (release, machine string, _ error)
}

func host() view {
	v := view{uid: os.Geteuid(), path: filepath.SplitList(os.Getenv("PATH")), fork: forkUserns, tool: look, uname: uname}
	v.limit = func() (delegation.Subtree, error) { return delegation.Find() }
	if u, err := user.LookupId(strconv.Itoa(v.uid)); err == nil {
		v.user = u.Username
	}
	return v
}

func probes(v view) []Finding {
	tools := v.tools()
	return []Finding{v.namespaces(), v.userns(), v.seccomp(), tools, v.subids(), v.limits(), v.memory(), v.kernel()}
}

// read gives the trimmed text of a file; ok is false if it is not there.
func (v view) read(path string) (text string, ok bool) {
	b, err := os.ReadFile(v.root + path)
	return strings.TrimSpace(string(b)), err == nil
}

// limits asks whether pods' limits can be enforced. It is never fatal.
func (v view) limits() Finding {
	f := Finding{Name: "resource limits"}
	s, err := v.limit()
	if err == nil {
		err = s.Lacks("cpu", "memory", "pids")
	}
	if err != nil {
		f.Detail, f.Cure = "limits are not enforced: "+err.Error(), report.Hint(err)
		return f
	}
	f.OK, f.Detail = true, "limits are enforced below "+s.Path
	return f
}

func (v view) kernel() Finding {
	f := Finding{Name: "kernel", OK: true}
	release, machine, err := v.uname()
	if err != nil {
		release = "unknown"
	}
	f.Detail = strings.TrimSpace("Linux " + release + " " + machine)
	return f
}

func uname() (release, machine string, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", err
	}
	return unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), nil
}
