package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
)

// TestUserRanges checks that the ID ranges of pods with a user namespace do not overlap, in one run nor with
// other pods if there are enough IDs, and never contain nobody.
func TestUserRanges(t *testing.T) {
	for ids, want := range map[uint64]string{
		1:       "[]",
		36000:   "[]",
		36864:   "[{32768 4096}]",
		65537:   "[{32768 4096} {36864 4096} {40960 4096} {45056 4096} {49152 4096} {53248 4096} {57344 4096}]",
		131072:  "[{32768 4096} {36864 4096} {40960 4096} {45056 4096} {49152 4096} {53248 4096} {57344 4096}]",
		131073:  "[{65537 65536}]",
		196609:  "[{65537 65536} {131073 65536}]",
		1 << 20: "",
	} {
		got := UserRanges(ids)
		if want != "" && fmt.Sprint(got) != want {
			t.Errorf("of %d ids: %v, want %s", ids, got, want)
		}
		for i, r := range got {
			if uint64(r.First+r.Count) > ids || r.First <= nobodyUser && r.First+r.Count > nobodyUser {
				t.Errorf("of %d ids: %v", ids, r)
			}
			for _, o := range got[:i] {
				if r.Overlaps(o) {
					t.Errorf("of %d ids: %v and %v", ids, r, o)
				}
			}
		}
	}
}

func TestRefuseUsers(t *testing.T) {
	few := host.IDs{Users: 65537, Groups: 65537, Hint: "more ids"}
	for _, c := range []struct {
		has   host.IDs
		user  string
		wrong string
	}{
		{few, "1000:4095", ""},
		{few, "nginx", ""},
		{few, "65534", "runs with the id 65534, and with hostUsers: false it has only the ids 0 to 4095"},
		{few, "0:4096", "runs with the id 4096"},
		{host.IDs{Users: 131073, Groups: 131073}, "65534", ""},
		{host.IDs{Users: 1, Groups: 1}, "", "requires 4096 ids above the first 32768, and this user has 1"},
		{host.IDs{Users: 131073, Groups: 1}, "", "and this user has 1"},
		{host.IDs{Users: 1 << 32, Groups: 1 << 32}, "", "root's pods have no user namespace"},
	} {
		plan := &pod.Plan{Name: "p", Users: &pod.IDRange{}, Containers: []pod.Container{{User: c.user}}}
		err := refuseUsers(plan, c.has)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%+v: %v", c, err)
		}
		plan.Users = nil
		if err := refuseUsers(plan, c.has); err != nil {
			t.Errorf("without users of its own: %v", err)
		}
	}
}
