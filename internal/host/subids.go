package host

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is a range of ids that a user may map: Count of them, from First on.
type Range struct{ First, Count uint64 }

func (r Range) end() uint64 { return r.First + r.Count } // the first id after it

func (r Range) overlaps(o Range) bool { return r.First < o.end() && o.First < r.end() }

// Mapping is what the namespaces of this user can map besides the user: the subordinate ranges,
// with the directory of newuidmap and newgidmap. It is empty if a pod has a single user id, and for
// root.
type Mapping struct {
	Tools      string
	UIDs, GIDs []Range
}

// FindMapping returns the Mapping of this process's user. Check reports what is missing.
func FindMapping() Mapping { return newProber(Setup{}).mapping() }

func (v prober) mapping() Mapping {
	dir, _ := v.idTools()
	return v.mappingBy(dir)
}

// mappingBy is mapping with a known directory of the tools.
func (v prober) mappingBy(dir string) Mapping {
	uids, _ := v.read("/etc/subuid")
	gids, _ := v.read("/etc/subgid")
	m := Mapping{Tools: dir, UIDs: ranges(uids, v.user, v.uid), GIDs: ranges(gids, v.user, v.uid)}
	if m.Tools == "" || len(m.UIDs) == 0 || len(m.GIDs) == 0 {
		return Mapping{}
	}
	return m
}

// IDs is the number of user and group ids, from 0 on, of a pod of this user, with a hint how to get
// more.
type IDs struct {
	Users, Groups uint64
	Hint          string
}

// FindIDs returns the IDs. Root's pods have all ids: no namespace is made.
func FindIDs() IDs { return newProber(Setup{}).podIDs() }

func (v prober) podIDs() IDs {
	if v.uid == 0 {
		return IDs{Users: 1 << 32, Groups: 1 << 32}
	}
	dir, f := v.idTools()
	m := v.mappingBy(dir)
	hint := v.addIDs()
	if f.Level != OK {
		hint = f.Hint
	}
	return IDs{Users: 1 + count(m.UIDs), Groups: 1 + count(m.GIDs), Hint: hint}
}

// wantedSubIDs is the number of subordinate ids that images expect: 65534 is "nobody" in most.
const wantedSubIDs = 65536

// subids checks the user's ranges in /etc/subuid and /etc/subgid: that there are enough, and that
// no other user has one of them.
func (v prober) subids() Finding {
	if v.uid == 0 {
		return okFinding("not needed by root")
	}
	least := uint64(1 << 32)
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		text, _ := v.read(file)
		userRanges := ranges(text, v.user, v.uid)
		for i, r := range userRanges {
			for _, o := range userRanges[:i] {
				if r.overlaps(o) {
					return failureFinding(fmt.Sprintf("%s gives %s ids twice: %s overlaps %s, and the kernel maps neither", file, v.name(), r, o), "remove one of the two lines from "+file+" as root")
				}
			}
		}
		switch n := count(userRanges); {
		case n == 0:
			return warningFinding(fmt.Sprintf("%s gives %s no ids: a pod has a single one, and images with more users are refused", file, v.name()), v.addIDs())
		case n < wantedSubIDs:
			return warningFinding(fmt.Sprintf("%s gives %s %d ids, images expect %d", file, v.name(), n, wantedSubIDs), v.addIDs())
		default:
			least = min(least, n)
		}
		if r, other, shared := v.shared(text, userRanges); shared {
			return warningFinding(fmt.Sprintf("%s gives %s and %s the same ids (%s): each can write the files of the other's pods", file, v.name(), other, r),
				fmt.Sprintf("remove the line of one of them from %s as root; for new ids: %s", file, strings.TrimPrefix(v.addIDs(), "as root: ")))
		}
	}
	return okFinding(fmt.Sprintf("%d ids", least))
}

// addIDs returns the hint with a range that is free in both files.
func (v prober) addIDs() string {
	first := uint64(100000) // useradd's SUB_UID_MIN
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		text, _ := v.read(file)
		for line := range strings.Lines(text) {
			if _, r, ok := parseRange(line); ok {
				first = max(first, r.end())
			}
		}
	}
	return fmt.Sprintf("as root: usermod --add-subuids %d-%d --add-subgids %[1]d-%[2]d %s", first, first+wantedSubIDs-1, v.name())
}

// shared returns a range of another user that overlaps one of userRanges.
func (v prober) shared(text string, userRanges []Range) (_ Range, owner string, _ bool) {
	for line := range strings.Lines(text) {
		owner, r, ok := parseRange(line)
		if !ok || owner == v.user || owner == strconv.Itoa(v.uid) {
			continue
		}
		for _, o := range userRanges {
			if r.overlaps(o) {
				return r, owner, true
			}
		}
	}
	return Range{}, "", false
}

func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.end()-1) }

// ranges returns the ranges of a user, by name or number, in the text of /etc/subuid. It skips an
// invalid line, as newuidmap does.
func ranges(text, name string, uid int) (list []Range) {
	for line := range strings.Lines(text) {
		owner, r, ok := parseRange(line)
		if ok && (owner == name || owner == strconv.Itoa(uid)) {
			list = append(list, r)
		}
	}
	return list
}

// parseRange parses NAME:START:COUNT.
func parseRange(line string) (owner string, _ Range, ok bool) {
	f := strings.Split(strings.TrimSpace(line), ":")
	if len(f) != 3 || f[0] == "" {
		return "", Range{}, false
	}
	first, err1 := strconv.ParseUint(f[1], 10, 32)
	n, err2 := strconv.ParseUint(f[2], 10, 32)
	if err1 != nil || err2 != nil || first == 0 || n == 0 || first+n > 1<<32-1 {
		return "", Range{}, false
	}
	return f[0], Range{first, n}, true
}

func count(list []Range) (sum uint64) {
	for _, r := range list {
		sum += r.Count
	}
	return sum
}
