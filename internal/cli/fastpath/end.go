package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/store"
)

// errRemains is the error for a pod whose remaining files can only be removed in its user namespace.
var errRemains = errors.New("files of the pod are left")

// down stops and removes a pod. If something remains that only the CLI can remove, ok is false: the pod
// is stopped, as the CLI would have done first, and the CLI continues.
func down(words []string) (code int, ok bool) {
	dirs, p, ok := podToEnd(words)
	if !ok {
		return 0, false
	}
	err := podclient.Down(context.Background(), dirs, p, podclient.StopOptions{Progress: os.Stderr, Remove: func(p store.Pod) error {
		if !p.CanRemoveDirectly() {
			return errRemains
		}
		return p.Remove()
	}})
	if errors.Is(err, errRemains) {
		return 0, false
	}
	if err == nil {
		fmt.Fprintf(os.Stdout, "pod/%s deleted\n", p.Name)
	}
	return reportError(err), true
}

// stop stops a pod that belongs to no workload.
func stop(words []string) (code int, ok bool) {
	_, p, ok := podToEnd(words)
	if !ok {
		return 0, false
	}
	m, err := podview.ReadManifest(p)
	if err != nil || len(m.Metadata.OwnerReferences) > 0 {
		return 0, false
	}
	err = podclient.Stop(context.Background(), p, podclient.StopOptions{Progress: os.Stderr})
	if err == nil {
		fmt.Fprintf(os.Stdout, "pod/%s stopped\n", p.Name)
	}
	return reportError(err), true
}

// hasEnded reports whether the end of a pod is recorded. Of another pod without a lock the CLI looks for processes.
func hasEnded(p store.Pod) bool {
	st, err := p.Status()
	return err == nil && st.Phase.Terminal()
}

// podToEnd returns the only pod that words name. ok is false if it neither runs nor has ended, if the user has to be
// informed that systemd may start it again, or if a controller was killed.
func podToEnd(words []string) (store.Dirs, store.Pod, bool) {
	namespace, name, ok := parseEnding(words)
	if !ok {
		return store.Dirs{}, store.Pod{}, false
	}
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil {
		return store.Dirs{}, store.Pod{}, false
	}
	p := dirs.Pod(namespace, name)
	unit, err := dirs.UnitOf(p)
	return dirs, p, p.Exists() && (p.Alive() || hasEnded(p)) && err == nil && unit == "" && !uncontrolled(dirs)
}
