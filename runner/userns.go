package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// mapsRoot says whether root in our user namespace is outside of it, too. Whoever that is might
// make cgroups anywhere, and must not make them outside of his own.
var mapsRoot = sync.OnceValue(func() bool {
	b, _ := os.ReadFile("/proc/self/uid_map")
	return keepsRoot(string(b))
})

// keepsRoot is mapsRoot for a uid_map (user_namespaces(7)). One that cannot be read may say so.
func keepsRoot(uidMap string) bool {
	first := strings.Fields(uidMap)
	return len(first) < 2 || first[1] == "0"
}

// idMapped says whether our user namespace has an id; file is uid_map or gid_map.
func idMapped(file string, id int) bool {
	b, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		var first, outside, count int64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && int64(id) >= first && int64(id)-first < count {
			return true
		}
	}
	return false
}

// groupsAllowed says whether the user namespace lets processes set their groups.
var groupsAllowed = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/proc/self/setgroups")
	return errors.Is(err, os.ErrNotExist) || strings.TrimSpace(string(b)) != "deny"
})
