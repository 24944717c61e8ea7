package admission

import (
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// Numbers of IDs for a pod with a user namespace of its own (hostUsers: false). The user's other pods
// keep 0 to 65535, where images expect their users, if there are more IDs. If not, the upper half, up to
// 65534 (nobody), is divided among the pods.
const (
	manyUsers  = 65536 // the same number as in Kubernetes (KEP-127)
	fewUsers   = 4096
	firstFew   = 32768
	nobodyUser = 65534
)

// UserRanges returns the ID ranges for pods with a user namespace of their own, where pods have ids IDs
// in total.
func UserRanges(ids uint64) (all []pod.IDRange) {
	ids = min(ids, 1<<31)
	for first := uint64(manyUsers + 1); first+manyUsers <= ids; first += manyUsers {
		all = append(all, pod.IDRange{First: int(first), Count: manyUsers})
	}
	if all == nil {
		for first := uint64(firstFew); first+fewUsers <= min(ids, nobodyUser); first += fewUsers {
			all = append(all, pod.IDRange{First: int(first), Count: fewUsers})
		}
	}
	return all
}

// refuseUsers refuses a Plan with a user namespace of its own if the host cannot give it one, or not the
// IDs that its containers need. It checks numeric IDs only: names, and owners of files, are resolved when
// there is a root file system.
func refuseUsers(plan *pod.Plan, has host.IDs) error {
	if plan.Users == nil {
		return nil
	}
	if has.Users == 1<<32 {
		return report.New(report.Host, "run podrun as an ordinary user", "pod %s: hostUsers: false: root's pods have no user namespace", plan.Name)
	}
	ranges := UserRanges(min(has.Users, has.Groups))
	if len(ranges) == 0 {
		return report.New(report.Host, has.Hint, "pod %s: hostUsers: false requires %d ids above the first %d, and this user has %d",
			plan.Name, fewUsers, firstFew, min(has.Users, has.Groups))
	}
	if need := highestID(plan); need >= ranges[0].Count {
		return report.New(report.Host, has.Hint, "pod %s runs with the id %d, and with hostUsers: false it has only the ids 0 to %d", plan.Name, need, ranges[0].Count-1)
	}
	return nil
}

// highestID returns the highest numeric user or group ID in the Plan.
func highestID(plan *pod.Plan) (highest int) {
	see := func(id int) { highest = max(highest, id) }
	for _, c := range slices.Concat(plan.InitContainers, plan.Containers) {
		for word := range strings.SplitSeq(c.User, ":") {
			if id, err := strconv.Atoi(word); err == nil {
				see(id)
			}
		}
		for _, id := range c.SupplementalGroups {
			see(int(id))
		}
	}
	for _, v := range plan.Volumes {
		for _, id := range fileUsers(v) {
			see(id)
		}
	}
	return highest
}
