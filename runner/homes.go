package runner

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/moby/sys/user"
)

// homes are the home directories of a container's users, by its own passwd file, as far as
// somebody has asked.
type homes struct{ found *sync.Map } // int → string

// of asks for a user's. pid is of the container's first process.
func (h homes) of(pid, uid int) string {
	if home, ok := h.found.Load(uid); ok {
		return home.(string)
	}
	text, err := readUserFile(fmt.Sprintf("/proc/%d/root", pid), "/etc/passwd")
	if err != nil {
		return "/"
	}
	users, err := user.ParsePasswdFilter(bytes.NewReader(text), func(u user.User) bool { return u.Uid == uid })
	if err != nil || len(users) == 0 {
		return "/" // it may have one later
	}
	h.found.Store(uid, users[0].Home)
	return users[0].Home
}
