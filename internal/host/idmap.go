package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// privilegedProgram describes what lets a program act as root.
type privilegedProgram struct {
	mode  fs.FileMode
	owner uint32
	caps  []byte // the extended attribute security.capability, or nil

	nosuid bool   // its file system ignores set-id bits and file capabilities
	mount  string // mount point of the file system
}

func statProgram(path string) (privilegedProgram, error) {
	st, err := os.Stat(path)
	if err != nil {
		return privilegedProgram{}, err
	}
	p := privilegedProgram{mode: st.Mode(), owner: st.Sys().(*syscall.Stat_t).Uid}
	buf := make([]byte, 64)
	if n, err := unix.Getxattr(path, "security.capability", buf); err == nil {
		p.caps = buf[:n]
	}
	if here, err := StatFS(path); err == nil && here.NoSUID {
		p.nosuid, p.mount = true, mountOf(path)
	}
	return p, nil
}

// installUidmap returns the hint that installs newuidmap and newgidmap.
func (v prober) installUidmap() string {
	if v.exists("/usr/bin/dnf") {
		return "as root: dnf install shadow-utils"
	}
	return "as root: apt-get install uidmap (Fedora: dnf install shadow-utils)"
}

// tools checks whether newuidmap and newgidmap exist and have their privileges. Without them a pod
// has a single user id.
func (v prober) tools() Finding {
	_, f := v.idTools()
	return f
}

// idTools returns the directory of newuidmap and newgidmap, or "" if they are unusable, with the
// finding.
func (v prober) idTools() (dir string, _ Finding) {
	if v.uid == 0 {
		return "", okFinding("not needed by root")
	}
	if v.status("NoNewPrivs") == "1" {
		return "", warningFinding("no_new_privs is set: newuidmap cannot work, a pod has a single user id", "remove NoNewPrivileges= and what implies it from the unit that starts podrun, or --security-opt no-new-privileges from the container")
	}
	for _, t := range []struct {
		name       string
		capability uint
	}{{"newuidmap", unix.CAP_SETUID}, {"newgidmap", unix.CAP_SETGID}} {
		path, p, err := v.find(t.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", warningFinding(t.name+" is missing: a pod has a single user id", v.installUidmap())
		case err != nil:
			return "", warningFinding(fmt.Sprintf("look for %s: %v", t.name, err), v.installUidmap())
		case !p.hasCapability(t.capability):
			return "", warningFinding(path+" is neither setuid root nor has its capability: a pod has a single user id", "as root: chmod u+s "+path)
		case p.nosuid:
			return "", warningFinding(path+" is on a file system mounted nosuid: a pod has a single user id", "as root: mount -o remount,bind,suid "+shellQuote(p.mount)+", or install the tool elsewhere on PATH")
		case dir != "" && dir != filepath.Dir(path):
			return "", warningFinding("newuidmap and newgidmap are in different directories: a pod has a single user id", v.installUidmap())
		}
		dir = filepath.Dir(path)
	}
	return dir, okFinding("newuidmap and newgidmap are in " + strings.TrimPrefix(dir, v.root))
}

func (v prober) find(name string) (string, privilegedProgram, error) {
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
	return "", privilegedProgram{}, err
}

func (p privilegedProgram) hasCapability(capability uint) bool {
	if p.mode&0o111 == 0 {
		return false
	}
	return p.owner == 0 && p.mode&fs.ModeSetuid != 0 || fileCapability(p.caps, capability)
}

// fileCapability parses a security.capability attribute (struct vfs_cap_data: a word of revision
// and flags, then the low words of permitted and inheritable). It reports whether the attribute has
// one of the first 32 capabilities, effective at once.
func fileCapability(attr []byte, capability uint) bool {
	if len(attr) < 12 {
		return false
	}
	effective := binary.LittleEndian.Uint32(attr)&1 != 0
	return effective && binary.LittleEndian.Uint32(attr[4:])>>capability&1 != 0
}
