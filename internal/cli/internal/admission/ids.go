package admission

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// refuseIDs refuses a Plan with user or group IDs that this user's pods do not have: such a container
// would wait forever. User names can only be resolved once there is a root file system; the supervisor
// checks those.
func refuseIDs(plan *pod.Plan, has host.IDs) error {
	var errs []error
	refuse := func(c *pod.Container, what string, id, count uint64) {
		if id >= count {
			errs = append(errs, report.New(report.Host, has.Hint,
				"container %s of pod %s runs with %s id %d, and a pod of this user has only the ids 0 to %d", c.Name, plan.Name, what, id, count-1))
		}
	}
	each := func(list []pod.Container) {
		for i := range list {
			c := &list[i]
			user, group, _ := strings.Cut(c.User, ":")
			if id, err := strconv.ParseUint(user, 10, 32); err == nil {
				refuse(c, "user", id, has.Users)
			}
			if id, err := strconv.ParseUint(group, 10, 32); err == nil {
				refuse(c, "group", id, has.Groups)
			}
			for _, id := range c.SupplementalGroups {
				refuse(c, "group", uint64(id), has.Groups)
			}
		}
	}
	each(plan.InitContainers)
	each(plan.Containers)
	for _, v := range plan.Volumes {
		for _, id := range fileUsers(v) {
			if uint64(id) >= has.Users {
				errs = append(errs, report.New(report.Host, has.Hint,
					"volume %s of pod %s has a file of user id %d, and a pod of this user has only the ids 0 to %d", v.Name, plan.Name, id, has.Users-1))
			}
		}
	}
	return errors.Join(errs...)
}

// fileUsers returns the owners of the files in a volume.
func fileUsers(v pod.Volume) []int {
	var ids []int
	for _, s := range v.Sources {
		ids = append(ids, s.User)
		for _, i := range s.Items {
			ids = append(ids, i.User)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
