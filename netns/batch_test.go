package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// What has failed is told by its name and its error, and the rest is made.
func TestABatchTellsWhatHasFailed(t *testing.T) {
	err := nsthread.Do(func() error {
		var b batch
		if err := b.send(); err != nil {
			t.Errorf("nothing to do: %v", err)
		}
		b.bringUp(loopback, "lo")
		b.address(loopback, "lo", netip.MustParsePrefix("10.1.1.1/32"))
		b.address(loopback, "lo", netip.MustParsePrefix("10.1.1.1/32")) // there already is as good
		b.bringUp(77, "nobody")
		b.route("add a way to nobody", way{to: netip.MustParsePrefix("10.2.0.0/16"), link: 78})
		b.address(loopback, "lo", netip.MustParsePrefix("10.1.1.2/32"))
		if err := b.send(); !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "bring up nobody") {
			t.Errorf("error %v, want that of the first that failed", err)
		}
		addrs, err := (&net.Interface{Index: loopback}).Addrs()
		var all string
		for _, a := range addrs {
			all += a.String() + " "
		}
		if !strings.Contains(all, "10.1.1.1/32") || !strings.Contains(all, "10.1.1.2/32") {
			t.Errorf("addresses %s, want both", all)
		}
		return err
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}

// A transaction is made whole or not at all, and its error is the kernel's.
func TestATransactionIsOneStep(t *testing.T) {
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: "one"}
	count := func() int {
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
		if err != nil {
			t.Fatal(err)
		}
		return len(tables)
	}
	err := nsthread.Do(func() error {
		err := Transact(func(c *nftables.Conn) error {
			c.CreateTable(table)
			c.AddRule(&nftables.Rule{Table: table, Chain: &nftables.Chain{Name: "none", Table: table}, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
			return nil
		})
		if !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "change 2 of 2") || count() != 0 {
			t.Errorf("error %v, %d tables, want that of the rule and none", err, count())
		}
		for _, want := range []error{nil, unix.EEXIST} {
			err := Transact(func(c *nftables.Conn) error {
				c.CreateTable(table)
				c.AddChain(&nftables.Chain{Name: "some", Table: table})
				return nil
			})
			if !errors.Is(err, want) || count() != 1 {
				t.Errorf("error %v, %d tables, want %v and 1", err, count(), want)
			}
		}
		if err := Transact(func(*nftables.Conn) error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("error %v, want the caller's", err)
		}
		return nil
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}

// What an earlier life has left, of whatever number, is replaced.
func TestAttachReplaces(t *testing.T) {
	router := OpenRouter(testenv.Network(t))
	pool, err := router.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	err = router.Do(func() error {
		var b batch
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		defer ns.Close()
		b.pair(end{7, podLink(3), linkMAC(1)}, end{8, "other", podMAC(1)}, int(ns.Fd()))
		return b.send()
	})
	if err != nil {
		t.Fatal(err)
	}
	stay, err := router.Stay()
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

// A router of which something is missing is not taken for one that is ready.
func TestHalfARouterIsNotReady(t *testing.T) {
	router := OpenRouter(testenv.Network(t))
	err := router.Do(func() error { // no route to a network's address with bits of a host's
		return prepare(Pool{V4: netip.MustParsePrefix("10.9.1.0/16"), V6: netip.MustParsePrefix("fd99::/64")})
	})
	if !errors.Is(err, unix.EINVAL) {
		t.Fatalf("error %v, want that of a route: this test proves nothing", err)
	}
	pool, err := router.Pool()
	if err != nil || pool.V4.IsValid() {
		t.Errorf("the router's pool is %v (%v), want none of IPv4", pool, err)
	}
	if pool, err = router.Prepare(); err != nil || !pool.V4.IsValid() {
		t.Errorf("prepared again it has %v (%v)", pool, err)
	}
}
