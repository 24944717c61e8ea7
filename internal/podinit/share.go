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

// All pods of a user with the same ids live in one user namespace and share the network namespace
// that routes between them. The first pod makes both. Every pod init holds them, so that the start
// of another pod finds them with any living pod init.
//
// The ids may have changed since (/etc/subuid, or a caller that may not use newuidmap). Files in
// the layer store belong to the ids of the process that unpacked them, so a pod with other ids gets
// a user namespace and a router of its own.

// routerFD is PODRUN_ROUTER_FD of nsenter/nsenter.h.
const routerFD = "8"

// joinShared passes to a pod's first process the namespaces that it joins. If there are none, it
// holds the share lock, so that no other pod starts meanwhile. The caller calls done when the pod
// init has started; done releases the lock or the namespaces. A prespawned process that is not
// usable is stopped and set to nil.
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
		if f != nil && !(suits && f == user) { // that process has joined it already
			cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", name, 3+len(cmd.ExtraFiles)))
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	return func() { closeAll(user, router) }, nil
}

// findShared opens the user namespace (nil as root) and the router's network namespace of a living
// pod with the ids of env. Both are nil if there is none.
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
			continue // the pod is ending
		}
		if os.Geteuid() != 0 {
			user, err = os.Open(proc + "/ns/user")
		}
		// The opened files are the pod init's if the pid still is.
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

// sameIDs reports whether a process is in a user namespace with the ids of env; for root always.
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

// ranges returns the sorted ranges of an id map, however its lines are arranged.
func ranges(text string) []string {
	words := strings.Fields(text)
	var all []string
	for w := range slices.Chunk(words, 3) {
		all = append(all, strings.Join(w, " "))
	}
	slices.Sort(all)
	return all
}

// startTime returns field 22 of /proc/PID/stat.
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
