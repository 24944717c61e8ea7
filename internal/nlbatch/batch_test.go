package nlbatch

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// Send reports the name and error of a failed change, and makes the rest.
func TestBatchReportsTheFirstFailure(t *testing.T) {
	err := nsthread.Do(func() error {
		var b Batch
		if err := b.Send(); err != nil {
			t.Errorf("nothing to do: %v", err)
		}
		b.SetUp(LoopbackIndex, "lo")
		b.AddAddress(LoopbackIndex, "lo", netip.MustParsePrefix("10.1.1.1/32"))
		b.AddAddress(LoopbackIndex, "lo", netip.MustParsePrefix("10.1.1.1/32")) // an existing one is no error
		b.SetUp(77, "nobody")
		b.AddRoute("add a way to nobody", Route{Dst: netip.MustParsePrefix("10.2.0.0/16"), Link: 78})
		b.AddAddress(LoopbackIndex, "lo", netip.MustParsePrefix("10.1.1.2/32"))
		if err := b.Send(); !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "bring up nobody") {
			t.Errorf("error %v, want the error of the first that failed", err)
		}
		addrs, err := (&net.Interface{Index: LoopbackIndex}).Addrs()
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
