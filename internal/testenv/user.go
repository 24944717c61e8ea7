package testenv

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// account is a line of /etc/passwd.
type account struct {
	Name     string
	UID, GID uint32
	Home     string
}

// ordinary reports whether a person or a test may have the account: its id is in the range of
// Debian and most distributions.
func (a account) ordinary() bool { return a.UID >= 1000 && a.UID < 60000 }

func ordinaryUser(name string) (account, error) {
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return account{}, err
	}
	subuid, err := os.ReadFile("/etc/subuid")
	if err != nil && !os.IsNotExist(err) {
		return account{}, err
	}
	return chooseUser(name, string(passwd), string(subuid))
}

// chooseUser returns the named account, or the first ordinary one in subuid.
func chooseUser(name, passwd, subuid string) (account, error) {
	accounts := map[string]account{}
	for line := range strings.Lines(passwd) {
		if a, ok := parseAccount(line); ok {
			accounts[a.Name] = a
		}
	}
	if name != "" {
		a, ok := accounts[name]
		if !ok || !a.ordinary() {
			return account{}, fmt.Errorf("PODRUN_TEST_USER=%s is no ordinary account of /etc/passwd", name)
		}
		return a, nil
	}
	for line := range strings.Lines(subuid) {
		owner, _, _ := strings.Cut(line, ":")
		if a, ok := accounts[owner]; ok && a.ordinary() {
			return a, nil
		}
	}
	return account{}, fmt.Errorf("these tests run as an ordinary user, and /etc/subuid names none: add one (useradd -m dev), or set PODRUN_TEST_USER, or run them as yourself")
}

func parseAccount(line string) (account, bool) {
	f := strings.Split(strings.TrimRight(line, "\n"), ":")
	if len(f) != 7 {
		return account{}, false
	}
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	return account{Name: f[0], UID: uint32(uid), GID: uint32(gid), Home: f[5]}, err1 == nil && err2 == nil
}
