package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// planned is the pod that a word means (podOf), with its Plan.
func (f *front) planned(c *cli.Context, word string) (store.Pod, *pod.Plan, error) {
	dirs, err := f.dirs()
	if err != nil {
		return store.Pod{}, nil, err
	}
	p, err := f.podOf(dirs, c.String("namespace"), word)
	if err != nil {
		return p, nil, err
	}
	plan, err := p.Plan()
	return p, plan, err
}

// choose finds the container a command is about: the named one, else the one the
// pod's annotation names, else the first. Of a choice that was made for the user
// among several f says so, in kubectl's words.
func (f *front) choose(p store.Pod, plan *pod.Plan, name string) (*pod.Container, error) {
	return remote.Choose(f.err, p, plan, name)
}

// isInit says whether a container is in the plan's list of init containers.
func isInit(plan *pod.Plan, name string) bool {
	for _, c := range plan.InitContainers {
		if c.Name == name {
			return true
		}
	}
	return false
}
