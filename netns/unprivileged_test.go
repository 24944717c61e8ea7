package netns

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

func TestWidestRangeOfGroups(t *testing.T) {
	for text, want := range map[string]string{
		"0 0 4294967295":                   "0 2147483647", // root's
		"0 1000 1":                         "0 0",          // no subordinate ids
		"0 1000 1\n1 100000 65536":         "0 65536",
		"1 100000 65536\n0 1000 1":         "0 65536",
		"0 200000 1\n1 100000 65536":       "1 65536", // from 200000 to 165535: an empty range
		"0 1000 1\n1 300 10\n11 500000 20": "1 30",    // 1000 is between, too
		"0 1000 1\n1 300 9\n10 200 3":      "1 9",     // a reversed order
	} {
		m, err := readMap(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		first, last := widestRange(m)
		if got := fmt.Sprintf("%d %d", first, last); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The kernel accepts the range, and it applies to the pod's network only.
func TestAllowUnprivileged(t *testing.T) {
	ns := testenv.Network(t)
	if err := LoopbackUp(ns); err != nil {
		t.Fatal(err)
	}
	if err := AllowUnprivileged(ns); err != nil {
		t.Fatal(err)
	}
	groups, err := groupRange()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"ip_unprivileged_port_start": "0", "ping_group_range": groups} {
		var inside []byte
		if err := nsthread.Do(func() (err error) { inside, err = os.ReadFile("/proc/sys/net/ipv4/" + name); return err }, ns); err != nil {
			t.Fatal(err)
		}
		outside, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(string(inside)), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
		if string(outside) == string(inside) {
			t.Errorf("%s is %s outside, too", name, outside)
		}
	}
	err = nsthread.Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil { // of this thread, which then exits
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:80")
		if err != nil {
			return err
		}
		l.Close()
		for _, s := range [][2]int{{unix.AF_INET, unix.IPPROTO_ICMP}, {unix.AF_INET6, unix.IPPROTO_ICMPV6}} {
			fd, err := unix.Socket(s[0], unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, s[1])
			if err != nil {
				return fmt.Errorf("make a socket to ping by: %w", err)
			}
			unix.Close(fd)
		}
		return nil
	}, ns)
	if err != nil {
		t.Error(err)
	}
}
