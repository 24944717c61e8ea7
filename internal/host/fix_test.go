package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFix(t *testing.T) {
	for hint, want := range map[string]*Fix{
		"as root: modprobe tun && echo tun > /etc/modules-load.d/tun.conf; in a container: --device /dev/net/tun":    {Command: "modprobe tun && echo tun > /etc/modules-load.d/tun.conf", Root: true},
		"as root: apt-get install uidmap (Fedora: dnf install shadow-utils)":                                         {Command: "apt-get install uidmap", Root: true},
		"loginctl enable-linger (or as root: loginctl enable-linger dev)":                                            {Command: "loginctl enable-linger"},
		"as root: sed -i '1 s/$/ cgroup_enable=memory/' /boot/firmware/cmdline.txt, and reboot":                      {Command: "sed -i '1 s/$/ cgroup_enable=memory/' /boot/firmware/cmdline.txt", Root: true, Then: "reboot"},
		"as root: mkdir -p /x && systemctl daemon-reload; then log out and in again":                                 {Command: "mkdir -p /x && systemctl daemon-reload", Root: true, Then: "log out and in again"},
		"as root: mount -o remount,bind,exec /home, or set XDG_DATA_HOME to a directory elsewhere":                   {Command: "mount -o remount,bind,exec /home", Root: true},
		"as root: timedatectl set-ntp true (Debian: apt-get install systemd-timesyncd); until then as root: date -s": {Command: "timedatectl set-ntp true", Root: true},
		"boot with cgroup v2: add x to the kernel command line":                                                      nil,
		"let systemd run for dev: log in with ssh instead of su, or as root: loginctl enable-linger dev":             nil,
	} {
		if diff := cmp.Diff(want, warningFinding("x", hint).Fix()); diff != "" {
			t.Errorf("%s\n%s", hint, diff)
		}
	}
}
