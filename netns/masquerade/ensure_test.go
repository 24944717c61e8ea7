package masquerade

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/router"
)

// Where the host has rules of its own the kernel does not masquerade pods, and the error names the
// rules.
func TestForeignRules(t *testing.T) {
	w := newTestbed(t)
	accept, refuse := nftables.ChainPolicyAccept, nftables.ChainPolicyDrop
	for name, tc := range map[string]struct {
		policy *nftables.ChainPolicy
		rule   []expr.Any
		hook   *nftables.ChainHook
		want   string
	}{
		"nothing":           {&accept, nil, nftables.ChainHookForward, ""},
		"a policy":          {&refuse, nil, nftables.ChainHookForward, "chain foreign own drops"},
		"a rule":            {&accept, nft.Verdict(expr.VerdictDrop), nftables.ChainHookForward, "rules in nftables' chain foreign own"},
		"a rule on the way": {&accept, nft.Verdict(expr.VerdictDrop), nftables.ChainHookOutput, "rules in nftables' chain foreign own"},
		"no hook":           {nil, nft.Verdict(expr.VerdictDrop), nil, ""},
	} {
		for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyINet} {
			table := &nftables.Table{Name: "foreign", Family: family}
			err := nft.Transact(func(c *nftables.Conn) error {
				c.CreateTable(table)
				chain := &nftables.Chain{Name: "own", Table: table}
				if tc.hook != nil {
					chain.Type, chain.Hooknum, chain.Priority, chain.Policy = nftables.ChainTypeFilter, tc.hook, nftables.ChainPriorityFilter, tc.policy
				}
				c.AddChain(chain)
				if tc.rule != nil {
					c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: tc.rule})
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Ensure(w.Router)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: %v", name, err)
			}
			err = nil
			if tc.want == "" {
				err = Remove(w.Router)
			} else if n, ferr := find(w.Router); n >= 0 || ferr != nil {
				t.Errorf("%s: uplink %d is made: %v", name, n, ferr)
			}
			err = errors.Join(err, nft.Transact(func(c *nftables.Conn) error { c.DelTable(table); return nil }))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A process that may not change the host's network gets an error.
func TestNotRoot(t *testing.T) {
	newTestbed(t)
	if IsHostRoot() {
		t.Error("a user namespace is taken for the machine's")
	}
	err := nsthread.Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&header, &data[0])
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		if err == nil {
			err = unix.Capset(&header, &data[0])
		}
		if err != nil {
			t.Error(err)
		}
		return Check()
	})
	if err == nil || !strings.Contains(err.Error(), "this process may not change the host's network") {
		t.Errorf("%v", err)
	}
}

// Ensure makes only what is missing, once, and Remove leaves nothing.
func TestEnsureAndRemove(t *testing.T) {
	w := newTestbed(t)
	server, _ := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	p := w.pod(1)
	for name, harm := range map[string]func() error{
		"nothing": func() error { return nil },
		"no device": func() error {
			return netlink.LinkDel(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: hostDevice(0)}})
		},
		"no rules": func() error {
			return nft.Transact(func(c *nftables.Conn) error {
				c.DelTable(&nftables.Table{Name: tableName(0), Family: nftables.TableFamilyIPv4})
				return nil
			})
		},
		"no forwarding": func() error { return os.WriteFile(ipForward, []byte("0"), 0) },
		"down": func() error {
			return netlink.LinkSetDown(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: hostDevice(0)}})
		},
		"rules of another version": func() error {
			return nft.Transact(func(c *nftables.Conn) error {
				c.CreateTable(&nftables.Table{Name: "podrun0.999", Family: nftables.TableFamilyIPv4})
				return nil
			})
		},
		"removed": func() error { return errors.Join(Remove(w.Router), Remove(w.Router)) },
	} {
		if err := harm(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if mtu, err := Ensure(w.Router); err != nil || mtu != 1500 {
			t.Fatalf("%s: %d, %v", name, mtu, err)
		}
		c, err := nettest.Dial(p.ns, "tcp", server)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		if n := tables(t); n != 1 {
			t.Errorf("%s: %d tables", name, n)
		}
	}
	if err := Remove(w.Router); err != nil {
		t.Fatal(err)
	}
	if err := ignoreNotFound(deleteLink(hostDevice(0))); err != nil {
		t.Errorf("a device that is not there: %v", err)
	}
	if there, err := exists(hostDevice(0)); there || err != nil || tables(t) != 0 {
		t.Errorf("left: the device %v, %d tables, %v", there, tables(t), err)
	}
	if c, err := nettest.Dial(p.ns, "tcp", server); err == nil {
		c.Close()
		t.Error("connected without a way out")
	}
}

// Each router has a masquerade device of its own, also when several are made at once. The next router removes
// what a killed one has left.
func TestManyRouters(t *testing.T) {
	w := newTestbed(t)
	server, _ := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	other := *w
	other.Testbed = &nettest.Testbed{Host: w.Host, Remote: w.Remote, RouterBed: nettest.NewRouterBed(t)}
	other.removeAtEnd(other.Router)
	var both sync.WaitGroup
	for _, r := range []router.Router{w.Router, other.Router} {
		both.Go(func() {
			if _, err := Ensure(r); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for _, p := range []*testPod{w.pod(1), other.pod(1)} {
		c := nettest.Connect(t, p.ns, "tcp", server)
		if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	if n := tables(t); n != 2 {
		t.Errorf("%d tables", n)
	}
	// A router's devices disappear with it; the next router removes its rules.
	if err := netlink.LinkDel(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: hostDevice(0)}}); err != nil {
		t.Fatal(err)
	}
	if err := Remove(other.Router); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(hostDevice(1)); err != nil || tables(t) != bit(there) {
		t.Errorf("%d tables, %v", tables(t), err)
	}
}

// Addresses that the host already uses are avoided, and so is a foreign device with a masquerade device's
// name.
func TestAddressesInUse(t *testing.T) {
	w := newTestbed(t)
	foreign := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: hostDevice(1)}}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: foreign.LinkAttrs, PeerName: "other"}); err != nil {
		t.Fatal(err)
	}
	defer netlink.LinkDel(foreign)
	if err := nettest.AddAddresses(nettest.HostLink, "169.254.88.1/32"); err != nil {
		t.Fatal(err)
	}
	if err := routeBy("169.254.88.0/30", nettest.RemoteAddr); err != nil {
		t.Fatal(err)
	}
	server, _ := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	p := w.pod(1)
	if n, err := find(w.Router); n != 2 || err != nil {
		t.Errorf("uplink %d: %v", n, err)
	}
	c := nettest.Connect(t, p.ns, "tcp", server)
	if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
		t.Error(err)
	}
}

// A packet is at most as long as the smallest MTU of the host's devices.
func TestSmallestMTU(t *testing.T) {
	newTestbed(t)
	vpn := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "vpn", MTU: 1380, Flags: net.FlagUp}, PeerName: "vpn2"}
	if err := netlink.LinkAdd(vpn); err != nil {
		t.Fatal(err)
	}
	defer netlink.LinkDel(vpn)
	deadline := time.Now().Add(time.Minute)
	for {
		mtu, err := smallestMTU()
		if err == nil && mtu == 1380 {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d, %v", mtu, err)
		}
	}
}
