package cli

import (
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// claimsOf are those that pods have.
func claimsOf(places []store.Pod) []claim {
	var list []claim
	for _, p := range places {
		plan, err := p.Plan()
		if err != nil {
			continue // half made, or half removed: what it had is listed by volume ls
		}
		for _, v := range plan.Volumes {
			if c := (claim{p.Namespace, v.Claim}); v.Kind == pod.ClaimVolume && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// dropVolumes is down --volumes: claims that others still have are kept.
func (f *front) dropVolumes(dirs store.Dirs, claims []claim) error {
	var free []claim
	for _, c := range claims {
		users, err := dirs.ClaimUsers(c.namespace, c.name)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			fmt.Fprintf(f.err, "podrun: persistentvolumeclaim/%s is kept: pod %s has it\n", c.name, users[0].Name)
			continue
		}
		free = append(free, c)
	}
	if len(free) == 0 {
		return nil
	}
	return f.removeVolumes(dirs, free)
}
