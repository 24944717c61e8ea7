package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// account is the unprivileged user that both sides run as.
type account struct {
	name, home string
	uid, gid   uint32
	ids        []uidRange // the user's own ID and the subordinate ranges
	switchTo   bool       // this program is root
	memory     string     // a directory on a tmpfs, if there is one: see makeMemoryDir
}

type uidRange struct{ first, count uint64 }

func findAccount(name string) (*account, error) {
	if os.Geteuid() == 0 && name == "" {
		return nil, errors.New("started as root: name an ordinary user with -user")
	}
	u, err := osuser.Current()
	if os.Geteuid() == 0 {
		u, err = osuser.Lookup(name)
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	p := &account{name: u.Username, home: u.HomeDir, uid: uint32(uid), gid: uint32(gid), switchTo: os.Geteuid() == 0}
	p.ids = append(subordinate(u.Username), uidRange{uid, 1})
	return p, nil
}

func subordinate(name string) []uidRange {
	var list []uidRange
	f, err := os.Open("/etc/subuid")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 3 || fields[0] != name {
			continue
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, uidRange{first, count})
		}
	}
	return list
}

// owns reports whether a process with this user ID belongs to the user.
func (p *account) owns(uid uint64) bool {
	for _, s := range p.ids {
		if uid >= s.first && uid < s.first+s.count {
			return true
		}
	}
	return false
}

// command prepares a program to be run as the user, in / and with env only.
func (p *account) command(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{
		"HOME=" + p.home, "USER=" + p.name, "LOGNAME=" + p.name, "LC_ALL=C.UTF-8", "TERM=dumb",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}, env...)
	if p.switchTo {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.gid}}
	}
	return cmd
}

// makeMemoryDir makes a directory on a tmpfs, where a service manager puts users' runtime
// directories.
func (p *account) makeMemoryDir() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return nil
	}
	dir, err := os.MkdirTemp(shm, "podrun-bench-")
	if err == nil {
		p.memory = dir
		err = os.Chown(dir, int(p.uid), int(p.gid))
	}
	return err
}

const shm = "/dev/shm"

// removeAll removes what the engines wrote, some of it with subordinate IDs. For that an
// unprivileged user needs a user namespace, which podman unshare provides.
func (p *account) removeAll(dir, podman string) error {
	if p.switchTo {
		return os.RemoveAll(dir)
	}
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	if out, err := exec.Command(podman, "unshare", "rm", "-rf", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
