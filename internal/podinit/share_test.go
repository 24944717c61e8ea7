package podinit

import (
	"fmt"
	"os"
	"testing"
)

// sameIDs ignores how a map is written, and finds a difference in any range.
func TestSameIDs(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("/proc/self/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	uids, gids := read("uid_map"), read("gid_map")
	for _, c := range []struct {
		env  []string
		want bool
	}{
		{[]string{"_PODRUN_UIDMAP=" + uids, "_PODRUN_GIDMAP=" + gids}, true},
		{[]string{"_PODRUN_UIDMAP=" + fmt.Sprint(ranges(uids))[1:len(fmt.Sprint(ranges(uids)))-1], "_PODRUN_GIDMAP=" + gids}, true},
		{[]string{"_PODRUN_UIDMAP=0 1000 1", "_PODRUN_GIDMAP=" + gids}, false},
		{[]string{"_PODRUN_UIDMAP=" + uids, "_PODRUN_GIDMAP=" + gids + " 90000 90000 1"}, false},
		{nil, true}, // root has no map
	} {
		if got := sameIDs(os.Getpid(), c.env); got != c.want {
			t.Errorf("%q: %v, want %v", c.env, got, c.want)
		}
	}
	if sameIDs(1<<22+1, []string{"_PODRUN_UIDMAP=" + uids}) {
		t.Error("nobody has the same ids")
	}
}
