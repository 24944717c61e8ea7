package services

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/testenv"
)

// Without Services the kernel tracks no connections. Connections from before the first Service
// survive it.
func TestNothingIsTrackedWithoutServices(t *testing.T) {
	testenv.NoLeaks(t)
	client, a := aPod("client", 9, func(p *Pod) { p.Labels = nil }), aPod("a", 2)
	n := newTestbed(t, client, a)
	n.serve("a", "TCP", 8080)
	n.serve("a", "UDP", 5353)
	l := nettest.Listen(t, n.pods["a"], ":7")
	c := nettest.Connect(t, n.pods["client"], "tcp", "10.88.0.2:7")
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	send := func(from, to net.Conn) {
		t.Helper()
		b := make([]byte, 4)
		to.SetDeadline(time.Now().Add(time.Minute))
		if _, err := from.Write([]byte("word")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, b); err != nil || string(b) != "word" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	ask := func(address string) {
		t.Helper()
		if answer, err := n.ask("client", "TCP", address); err != nil || answer != "a 10.88.0.9" {
			t.Errorf("%s: %q, %v", address, answer, err)
		}
		send(c, other)
		send(other, c)
	}
	n.apply(Catalog{Pods: []Pod{client, a}})
	ask("10.88.0.2:8080")
	if answer, err := n.ask("client", "TCP", "10.88.128.1:80"); err == nil {
		t.Errorf("a Service that there is not: %q", answer)
	}
	if got := tracked(t, n.RouterNS); got != "0" && got != "" {
		t.Errorf("%s connections are tracked", got)
	}
	n.apply(served(client, a))
	ask("10.88.128.1:80")
	if tracked(t, n.RouterNS) == "0" {
		t.Error("nothing is tracked with a Service: this test proves nothing")
	}
	n.apply(Catalog{Pods: []Pod{client, a}}) // the last pod behind it disappears
	ask("10.88.0.2:8080")
	if answer, err := n.ask("client", "TCP", "10.88.128.1:80"); err == nil {
		t.Errorf("a Service that has gone: %q", answer)
	}
}

// tracked returns the number of connections that the kernel tracks; empty if the kernel does not
// report it.
func tracked(t *testing.T, router string) (n string) {
	t.Helper()
	nettest.Do(t, router, func() error {
		b, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
		n = strings.TrimSpace(string(b))
		if os.IsNotExist(err) {
			err = nil
		}
		return err
	})
	return n
}

// A table that cannot be read is not taken for a missing one: it is replaced and all its routes are
// gone.
func TestUnknownTableIsReplaced(t *testing.T) {
	testenv.NoLeaks(t)
	client, a := aPod("client", 9, func(p *Pod) { p.Labels = nil }), aPod("a", 2)
	n := newTestbed(t, client, a)
	n.serve("a", "TCP", 8080)
	n.apply(served(client, a))
	if answer, err := n.ask("client", "TCP", "10.88.128.1:80"); err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	nettest.Do(t, n.RouterNS, func() error {
		return nft.Transact(func(c *nftables.Conn) error {
			table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
			c.AddRule(&nftables.Rule{Table: table, Chain: &nftables.Chain{Name: "stamp", Table: table}, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}})
			return nil
		})
	})
	n.apply(Catalog{Pods: []Pod{client, a}})
	if answer, err := n.ask("client", "TCP", "10.88.128.1:80"); err == nil {
		t.Errorf("a Service that has gone: %q", answer)
	}
}
