package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// program is what makes a program able to act as root.
type program struct {
	mode  fs.FileMode
	owner uint32
	caps  []byte // the extended attribute security.capability, or nil
}

func look(path string) (program, error) {
	st, err := os.Stat(path)
	if err != nil {
		return program{}, err
	}
	p := program{mode: st.Mode(), owner: st.Sys().(*syscall.Stat_t).Uid}
	buf := make([]byte, 64)
	if n, err := unix.Getxattr(path, "security.capability", buf); err == nil {
		p.caps = buf[:n]
	}
	return p, nil
}

const installUidmap = "as root: apt-get install uidmap (Fedora: dnf install shadow-utils)"

// tools asks whether newuidmap and newgidmap are there and may do their work.
// Without them a pod has a single user id.
func (v view) tools() Finding {
	f := Finding{Name: "id mapping tools"}
	if v.uid == 0 {
		f.OK, f.Detail = true, "not needed by root"
		return f
	}
	if v.status("NoNewPrivs") == "1" {
		f.Detail, f.Cure = "no_new_privs is set, newuidmap cannot work", "remove NoNewPrivileges= from the unit that starts podrun"
		return f
	}
	for _, t := range []struct {
		name       string
		capability uint
	}{{"newuidmap", unix.CAP_SETUID}, {"newgidmap", unix.CAP_SETGID}} {
		path, p, err := v.find(t.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Detail, f.Cure = t.name+" is missing, a pod has a single user id", installUidmap
			return f
		case err != nil:
			f.Detail, f.Cure = fmt.Sprintf("look for %s: %v", t.name, err), installUidmap
			return f
		case !p.can(t.capability):
			f.Detail, f.Cure = path+" is neither setuid root nor has its capability", "as root: chmod u+s "+path
			return f
		}
	}
	f.OK, f.Detail = true, "newuidmap and newgidmap are there"
	return f
}

func (v view) find(name string) (string, program, error) {
	err := fs.ErrNotExist
	for _, dir := range append(v.path, "/usr/bin", "/bin") {
		path := filepath.Join(v.root, dir, name)
		p, e := v.tool(path)
		if e == nil {
			return path, p, nil
		}
		if !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return "", program{}, err
}

func (p program) can(capability uint) bool {
	if p.mode&0o111 == 0 {
		return false
	}
	return p.owner == 0 && p.mode&fs.ModeSetuid != 0 || permits(p.caps, capability)
}

// permits reads a security.capability attribute (struct vfs_cap_data: a word of
// revision and flags, then the low words of permitted and inheritable) for one of
// the first 32 capabilities, which has to be effective at once.
func permits(attr []byte, capability uint) bool {
	if len(attr) < 12 {
		return false
	}
	effective := binary.LittleEndian.Uint32(attr)&1 != 0
	return effective && binary.LittleEndian.Uint32(attr[4:])>>capability&1 != 0
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
		n := count(text, v.user, v.uid)
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

// count adds up the ranges of a user, by name or number, in the text of
// /etc/subuid (NAME:START:COUNT). A line that does not parse gives nothing, as
// newuidmap has it.
func count(text, name string, uid int) int64 {
	var sum int64
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || f[0] == "" || f[0] != name && f[0] != strconv.Itoa(uid) {
			continue
		}
		start, err1 := strconv.ParseUint(f[1], 10, 32)
		n, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || start == 0 || start+n > 1<<32-1 {
			continue
		}
		sum += int64(n)
	}
	return sum
}
