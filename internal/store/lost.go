package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
)

// LostRuntime reports whether a pod runs without its control socket, because its runtime directory was deleted
// (by an operator, a cleaner, the end of a login session). No command reaches such a pod. It returns the pod init.
func (p Pod) LostRuntime() (podInit procfs.Process, lost bool) {
	if !p.lacksSocket() {
		return podInit, false
	}
	life := p.Incarnation()
	h, ok := p.holder()
	if !ok || !h.serving || !p.lacksSocket() { // the first look may have been before the pod served
		return podInit, false
	}
	// Remove deletes the Plan before the runtime directory, but the Plan may be the next pod's.
	if p.Removing() || !p.Exists() || !p.Lives(life) {
		return podInit, false
	}
	st, ok := procfs.Lookup(h.PodInit.PID)
	return h.PodInit, ok && st.Process == h.PodInit
}

// lacksSocket reports whether there is no control socket.
func (p Pod) lacksSocket() bool {
	_, err := os.Lstat(filepath.Join(p.runtime, socketFile))
	return errors.Is(err, fs.ErrNotExist)
}

// MissingSecrets returns the Secrets that the pod needs to start its containers, and that do not exist. They are in the
// runtime directory and are lost with it.
func (p Pod) MissingSecrets() (names []string) {
	plan, err := p.Plan()
	if err != nil || plan.InCluster() { // the node stores a cluster's again
		return nil
	}
	for _, name := range plan.RequiredSecrets() {
		if _, err := p.Object(pod.KindSecret, name); errors.Is(err, fs.ErrNotExist) {
			names = append(names, name)
		}
	}
	return names
}

// RestoreRuntime makes the runtime directory of a pod that has lost it, without content.
func (p Pod) RestoreRuntime() error {
	err := makePrivate(p.dirs.Runtime)
	if err == nil {
		err = errors.Join(makeDirs(p.runtime), makeDirs(p.LibcontainerDir()))
	}
	if err == nil {
		err = p.linkRuntime()
	}
	if err != nil {
		return fmt.Errorf("restore the runtime directory of pod %s: %w", p.Name, err)
	}
	return nil
}
