package router

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// Attach replaces what an earlier run has left, whatever device numbers it has.
func TestAttachReplacesWhatIsLeft(t *testing.T) {
	router := Open(testenv.Network(t))
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	err = router.Do(func() error {
		var b nlbatch.Batch
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		defer ns.Close()
		addVeth(&b, vethEnd{7, podLink(3), routerMAC(1)}, vethEnd{8, "other", podMAC(1)}, int(ns.Fd()))
		return b.Send()
	})
	if err != nil {
		t.Fatal(err)
	}
	stay, err := router.Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer stay.Leave()
	for range 2 {
		pod := testenv.Network(t)
		if err := stay.Attach(pod, pool, 3); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, in := range []func(func() error) error{stay.Do, func(f func() error) error { return nsthread.Do(f, pod) }} {
			if err := in(func() error {
				all, err := net.Interfaces()
				for _, i := range all {
					if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
						names = append(names, i.Name)
					}
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(names, " "); got != "p3 eth0" {
			t.Errorf("devices that are up: %q, want p3 in the router and eth0 in the pod", got)
		}
	}
}

// A router of which something is missing is not reported as ready.
func TestIncompleteRouterIsNotReady(t *testing.T) {
	router := Open(testenv.Network(t))
	err := router.Do(func() error { // no route to a network's address with bits of a host's
		return prepare(ipam.Pool{V4: netip.MustParsePrefix("10.9.1.0/16"), V6: netip.MustParsePrefix("fd99::/64")})
	})
	if !errors.Is(err, unix.EINVAL) {
		t.Fatalf("error %v, want a route's: this test proves nothing", err)
	}
	pool, err := router.CurrentPool()
	if err != nil || pool.V4.IsValid() {
		t.Errorf("the router's pool is %v (%v), want none of IPv4", pool, err)
	}
	if pool, err = router.Prepare(); err != nil || !pool.V4.IsValid() {
		t.Errorf("prepared again it has %v (%v)", pool, err)
	}
}

// After Disconnect nothing passes until the pod is attached again.
func TestDisconnect(t *testing.T) {
	router := Open(testenv.Network(t))
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	pod := testenv.Network(t)
	up := func(attached error) bool {
		t.Helper()
		var is bool
		err := errors.Join(attached, router.Do(func() (err error) { is, err = isUp(routerIndexBase+3, podLink(3)); return err }))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !up(router.Attach(pod, pool, 3)) {
		t.Fatal("the device is down: this test proves nothing")
	}
	if up(router.Disconnect(3)) {
		t.Error("the device is up")
	}
	if !up(router.Attach(pod, pool, 3)) {
		t.Error("attached again the device is down")
	}
}
