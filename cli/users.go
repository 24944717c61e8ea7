package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// How many ids a pod with users of its own gets (hostUsers: false). Other pods of the user
// keep 0 to 65535, where images expect theirs, if there are more; if not, the upper half is
// parted, up to 65534, which is nobody's.
const (
	manyUsers  = 65536 // as many as Kubernetes gives (KEP-127)
	fewUsers   = 4096
	firstFew   = 32768
	nobodyUser = 65534
)

// userRanges are what pods with users of their own can get, where pods have so many ids.
func userRanges(ids uint64) (all []pod.IDRange) {
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

// refuseUsers refuses a plan that asks for users of its own where none, or not those that
// its containers need, can be had. It says which it needs by number: names, and owners of
// files, are known when there is a root file system.
func refuseUsers(plan *pod.Plan, has host.IDs) error {
	if plan.Users == nil {
		return nil
	}
	if has.Users == 1<<32 {
		return report.New(report.Internal, "run podrun as an ordinary user", "pod %s: hostUsers: false: root's pods have no user namespace", plan.Name)
	}
	ranges := userRanges(min(has.Users, has.Groups))
	if len(ranges) == 0 {
		return report.New(report.Internal, has.Cure, "pod %s: hostUsers: false takes %d ids beyond the first %d, and pods of this user have %d",
			plan.Name, fewUsers, firstFew, min(has.Users, has.Groups))
	}
	if need := highestID(plan); need >= ranges[0].Count {
		return report.New(report.Internal, has.Cure, "pod %s runs with the id %d, and with hostUsers: false it has only the ids 0 to %d", plan.Name, need, ranges[0].Count-1)
	}
	return nil
}

// highestID is the highest user or group that the plan names by its number.
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

// create makes the pod's directory. One with users of its own gets its range, which is the
// pod's until that is removed.
func (l *launch) create(p *upPod, manifest []byte) error {
	if p.plan.Users == nil {
		return p.place.Create(p.plan, manifest)
	}
	lock, err := l.dirs.ShareLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Exclusive(); err != nil {
		return err
	}
	has := l.front.rooms.ids()
	ranges := userRanges(min(has.Users, has.Groups))
	taken, err := takenUsers(l.dirs, p.place)
	if err != nil {
		return err
	}
	before, err := p.place.Plan()
	if p.past != nil && err == nil && before.Users != nil && slices.Contains(ranges, *before.Users) {
		p.plan.Users = before.Users
		return p.place.Create(p.plan, manifest)
	}
	i := slices.IndexFunc(ranges, func(r pod.IDRange) bool { return !slices.ContainsFunc(taken, r.Overlaps) })
	if i < 0 {
		return report.New(report.Internal, "podrun down one of them; or "+has.Cure,
			"pod %s: hostUsers: false: all %d ranges of ids are taken by other pods that ask for their own", p.place.Name, len(ranges))
	}
	p.plan.Users = &ranges[i]
	return p.place.Create(p.plan, manifest)
}

// takenUsers are the ranges of the user's other pods, living or not.
func takenUsers(dirs store.Dirs, but store.Pod) (taken []pod.IDRange, err error) {
	pods, err := dirs.Pods()
	if err != nil {
		return nil, fmt.Errorf("find free ids: %w", err)
	}
	for _, other := range pods {
		if other.DataDir() == but.DataDir() {
			continue
		}
		if plan, err := other.Plan(); err == nil && plan.Users != nil {
			taken = append(taken, *plan.Users)
		}
	}
	return taken, nil
}
