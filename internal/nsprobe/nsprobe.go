// Package nsprobe tries, in namespaces like a pod's, what no file of the host shows: whether
// the ids can be mapped, whether the data's file system holds root file systems, whether the kernel
// lets a pod mount what it needs. Its findings are internal/host's.
//
// It consists of two hidden re-exec entry points, one inside the other: the outer in a user
// namespace of the caller's ids, the inner in the other namespaces of a pod.
package nsprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/netns/masquerade"
)

// EntryPoints returns the entry points. The program that calls Run must register them.
func EntryPoints() map[string]func(args []string) int {
	return map[string]func(args []string) int{protocol.EntryProbe: enterNamespaces, protocol.EntryProbeInside: probeAll}
}

// names returns the probes of this package, in the order of their findings.
func names() []string {
	return []string{host.MappedIDs, host.Overlay, host.Network, host.Sandbox}
}

// Probes returns the probes of this package for host.Check. One run below the directory that place
// returns answers all of them. If ctx ends it, the findings report that.
func Probes(ctx context.Context, place func() (string, error)) []host.Probe {
	once := sync.OnceValue(func() []host.Finding {
		dir, err := place()
		if err != nil {
			return notTried(fmt.Errorf("make a directory for the probe: %w", err))
		}
		return Run(ctx, dir)
	})
	var probes []host.Probe
	for i, name := range names() {
		probes = append(probes, host.Probe{Name: name, Run: func() host.Finding { return once()[i] }})
	}
	return probes
}

// Run tries everything below dir, an existing directory of the calling user, and leaves nothing in
// it. It ends with ctx.
func Run(ctx context.Context, dir string) []host.Finding {
	tmp, err := os.MkdirTemp(dir, ".podrun-trial-")
	if err != nil {
		return notTried(fmt.Errorf("make a directory for the probe: %w", err))
	}
	defer clean(tmp)
	// The entry point leads a process group: Ctrl-C ends the caller, and the end of ctx the group.
	cmd := reexec.Command(reexec.Spec{Name: protocol.EntryProbe, Args: []string{tmp}, Userns: true})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return notTried(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		return notTried(errors.New("no answer in time"))
	}
	findings := read(stdout.Bytes(), stderr.String(), err)
	for i, f := range findings {
		if f.Name == host.Network && f.Level == host.OK {
			findings[i].Detail += masqueradeDetail()
		}
	}
	return findings
}

// masqueradeDetail describes the egress of root's pods in the network of this process, the host's.
func masqueradeDetail() string {
	if !masquerade.IsHostRoot() {
		return ""
	}
	if err := masquerade.Check(); err != nil {
		return "; no masquerade: " + err.Error()
	}
	return ", and root's pods use masquerade"
}

// clean removes what an interrupted run has left. Its mounts have gone with it; all files belong to
// the user; overlayfs makes directories of mode 000.
func clean(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// read parses the output of the entry points.
func read(stdout []byte, stderr string, ended error) []host.Finding {
	findings := make([]host.Finding, 0, len(names()))
	if ended == nil && json.Unmarshal(stdout, &findings) == nil && len(findings) == len(names()) {
		return findings
	}
	stderr = strings.Join(strings.Fields(stderr), " ")
	var exit *exec.ExitError
	if !errors.As(ended, &exit) || stderr == "" {
		return notTried(fmt.Errorf("it ended with %v: %q", ended, stderr))
	}
	// The constructor of reexec/nsenter reports what it could not enter.
	findings = notTried(errors.New("there is no user namespace to try it in"))
	if !strings.HasPrefix(stderr, "make a user namespace") && !strings.HasPrefix(stderr, "make a mount namespace") {
		findings[0] = host.Finding{Name: host.MappedIDs, Level: host.Failure, Detail: "the ids of pods cannot be mapped: " + stderr,
			Hint: "look at the line of this user in /etc/subuid and /etc/subgid: both must be ranges that no other user has, and that this machine or container has (cat /proc/self/uid_map)"}
	}
	return findings
}

// notTried returns the findings for a run that could try nothing.
func notTried(cause error) []host.Finding {
	var findings []host.Finding
	for _, name := range names() {
		findings = append(findings, host.Finding{Name: name, Level: host.Warning, Detail: "not tried: " + cause.Error(), Hint: "see the other findings first"})
	}
	return findings
}
