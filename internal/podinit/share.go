package podinit

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/store"
)

// All pods of a user that have the same ids live in one user namespace, and share the
// network namespace that routes between them. The first pod makes both; every keeper holds
// them, and whoever starts another pod finds them with any keeper that lives.
//
// Ids may have changed since (/etc/subuid, or a caller that may not use newuidmap): files
// in the store of layers belong to the ids of who unpacked them, so a pod with other ids
// gets a user namespace, and a router, of its own.

// routerFD is PODRUN_ROUTER_FD of nsenter/nsenter.h.
const routerFD = "8"

// joinShared hands to a pod's first process the namespaces that it is to join. While there are
// none nobody else starts a pod: done, to be called when the keeper has been started, lets
// go of all. A process that was begun ahead and does not suit ends, and is nil from then on.
func joinShared(cmd *exec.Cmd, dirs store.Dirs, ahead **Prespawn) (done func(), err error) {
	lock, err := dirs.ShareLock()
	if err != nil {
		return nil, err
	}
	if err := lock.Exclusive(); err != nil {
		lock.Close()
		return nil, err
	}
	user, router, err := findShared(dirs, cmd.Env)
	if err != nil {
		lock.Close()
		return nil, err
	}
	suits := (*ahead).usableFor(cmd, user)
	if !suits {
		(*ahead).Stop()
		*ahead = nil
	}
	if router == nil {
		return func() { lock.Close() }, nil
	}
	lock.Close()
	for name, f := range map[string]*os.File{"_PODRUN_USERNS": user, "_PODRUN_ROUTER": router} {
		if f != nil && !(suits && f == user) { // which that process has joined
			cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", name, 3+len(cmd.ExtraFiles)))
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	return func() { closeAll(user, router) }, nil
}

// findShared opens the user namespace (nil as root) and the router's network namespace of
// a living pod with the ids that env asks for; both are nil if there is none.
func findShared(dirs store.Dirs, env []string) (user, router *os.File, err error) {
	for p, err := range dirs.EachPod() {
		if err != nil {
			return nil, nil, err
		}
		pid, start, ok := p.PodInit()
		if !ok || !sameIDs(pid, env) {
			continue
		}
		proc := "/proc/" + strconv.Itoa(pid)
		if router, err = os.Open(proc + "/fd/" + routerFD); err != nil {
			continue // it is ending
		}
		if os.Geteuid() != 0 {
			user, err = os.Open(proc + "/ns/user")
		}
		// What was opened is the keeper's if the pid still is.
		if now, ok := startTime(pid); err == nil && ok && now == start {
			return user, router, nil
		}
		closeAll(user, router)
	}
	return nil, nil, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// sameIDs says whether a process is in a user namespace with the ids of env; for root it
// is.
func sameIDs(pid int, env []string) bool {
	for name, file := range map[string]string{"_PODRUN_UIDMAP=": "uid_map", "_PODRUN_GIDMAP=": "gid_map"} {
		i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, name) })
		if i < 0 {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil || !slices.Equal(ranges(string(b)), ranges(env[i][len(name):])) {
			return false
		}
	}
	return true
}

// ranges are the sorted ranges of an id map, in whatever lines it is written.
func ranges(text string) []string {
	words := strings.Fields(text)
	var all []string
	for w := range slices.Chunk(words, 3) {
		all = append(all, strings.Join(w, " "))
	}
	slices.Sort(all)
	return all
}

// startTime is field 22 of /proc/PID/stat.
func startTime(pid int) (uint64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}
