package systemd

import (
	"os"
	"os/user"
	"strconv"
)

// Lingers says whether the calling user's service manager, and with it the user's
// units, outlives the user's logins (loginctl enable-linger).
func Lingers() bool {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return false
	}
	_, err = os.Stat("/var/lib/systemd/linger/" + u.Username)
	return err == nil
}
