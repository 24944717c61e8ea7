package podinit

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// All pods of a user with the same ids live in one user namespace and share the network namespace
// that routes between them. The first pod makes both. Every pod init holds them, so that the start
// of another pod finds them with any living pod init.
//
// The ids may have changed since (/etc/subuid, or a caller that may not use newuidmap). Files in
// the layer store belong to the ids of the process that unpacked them, so a pod with other ids gets
// a user namespace and a router of its own.

// joinShared returns a pod's first process, which is ready for the pod of cmd, and passes the router to cmd. If there is no
// router, it holds the lock of the shared resources, so that no other pod starts meanwhile. The caller calls
// done when the pod init has started; done ends the first process, and releases the lock or the router. If the first process
// of the options is not usable, it is stopped.
func joinShared(cmd *exec.Cmd, o Options) (first *First, done func(), err error) {
	lock, err := o.Dirs.LockSharedResources()
	if err != nil {
		return nil, nil, err
	}
	ids := reexec.IDEnv()
	user, router, err := findShared(o.Dirs, ids)
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	defer closeAll(user)
	release := func() { lock.Close() }
	if router != nil {
		lock.Close()
		release = func() { router.Close() }
		reexec.PassFileEnv(cmd, protocol.EnvRouter, router)
	}
	if first = o.First; first.usableFor(ids, user) {
		return first, release, nil
	}
	first.Stop()
	if first, err = startFirst(o.Programs.Pod, o.Dirs, ids, user); err == nil {
		if err = first.ready(); err == nil {
			return first, func() { release(); first.Stop() }, nil
		}
		first.Stop()
	}
	release()
	return nil, nil, err
}

// findShared opens the user namespace (nil as root) and the router's network namespace of a living
// pod with ids. Both are nil if there is none.
func findShared(dirs store.Dirs, ids []string) (user, router *os.File, err error) {
	for p, err := range dirs.EachPod() {
		if err != nil {
			return nil, nil, err
		}
		pid, start, ok := p.PodInit()
		if !ok || !sameIDs(pid, ids) {
			continue
		}
		proc := "/proc/" + strconv.Itoa(pid)
		if router, err = os.Open(fmt.Sprintf("%s/fd/%d", proc, protocol.FDRouter)); err != nil {
			continue // the pod is ending
		}
		if os.Geteuid() != 0 {
			user, err = os.Open(proc + "/ns/user")
		}
		// The opened files are the pod init's if the pid still is.
		if st, ok := procfs.Lookup(pid); err == nil && ok && st.StartTime == start {
			return user, router, nil
		}
		closeAll(user, router)
	}
	return nil, nil, nil
}

// OpenShared opens the user namespace (nil as root) and the router's network namespace of the user's living
// pods. Both are nil if there is no pod.
func OpenShared(dirs store.Dirs) (user, router *os.File, err error) {
	return findShared(dirs, reexec.IDEnv())
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// sameIDs reports whether a process is in a user namespace with ids; for root always.
func sameIDs(pid int, ids []string) bool {
	for name, file := range map[string]string{protocol.EnvUIDMap: "uid_map", protocol.EnvGIDMap: "gid_map"} {
		i := slices.IndexFunc(ids, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if i < 0 {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil || !slices.Equal(ranges(string(b)), ranges(ids[i][len(name)+1:])) {
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
