package host

import (
	"fmt"
	"strconv"
	"strings"
)

// Range are ids that a user may map: Count of them, from First on.
type Range struct{ First, Count uint64 }

// Mapping is what the namespaces of this user can map beside the user: the
// subordinate ranges, with the directory of newuidmap and newgidmap. All is empty
// where a pod has a single user id, and for root.
type Mapping struct {
	Tools      string
	UIDs, GIDs []Range
}

// Mappable finds the Mapping of this process's user. What is missing is told by
// Check.
func Mappable() Mapping { return host().mapping() }

func (v view) mapping() Mapping {
	dir, _ := v.idTools()
	uids, _ := v.read("/etc/subuid")
	gids, _ := v.read("/etc/subgid")
	m := Mapping{Tools: dir, UIDs: ranges(uids, v.user, v.uid), GIDs: ranges(gids, v.user, v.uid)}
	if m.Tools == "" || len(m.UIDs) == 0 || len(m.GIDs) == 0 {
		return Mapping{}
	}
	return m
}

// enough is how many subordinate ids images expect: 65534 is "nobody" in most.
const enough = 65536

// subids asks for the user's ranges in /etc/subuid and /etc/subgid.
func (v view) subids() Finding {
	f := Finding{Name: "subordinate ids"}
	if v.uid == 0 {
		f.OK, f.Detail = true, "not needed by root"
		return f
	}
	least := int64(-1)
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		text, _ := v.read(file)
		n := count(ranges(text, v.user, v.uid))
		if n < enough {
			f.Cure = fmt.Sprintf("as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s (a range nobody else has)", v.name())
			f.Detail = fmt.Sprintf("%s gives %s %d ids, images expect %d", file, v.name(), n, enough)
			return f
		}
		if least < 0 || n < least {
			least = n
		}
	}
	f.OK, f.Detail = true, fmt.Sprintf("%d ids", least)
	return f
}

func (v view) name() string {
	if v.user == "" {
		return strconv.Itoa(v.uid)
	}
	return v.user
}

// ranges are those of a user, by name or number, in the text of /etc/subuid
// (NAME:START:COUNT). A line that does not parse gives nothing, as newuidmap has it.
func ranges(text, name string, uid int) (list []Range) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || f[0] == "" || f[0] != name && f[0] != strconv.Itoa(uid) {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		n, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || first == 0 || n == 0 || first+n > 1<<32-1 {
			continue
		}
		list = append(list, Range{first, n})
	}
	return list
}

func count(list []Range) (sum int64) {
	for _, r := range list {
		sum += int64(r.Count)
	}
	return sum
}
