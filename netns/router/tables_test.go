package router

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// A pod has one table, for its current mode; other pods' tables stay.
func TestOneTablePerPod(t *testing.T) {
	err := nsthread.Do(func() error {
		pool, err := ipam.ChoosePool(nil)
		if err != nil {
			return err
		}
		has := func(want ...string) {
			t.Helper()
			c, err := nftables.New()
			if err != nil {
				t.Fatal(err)
			}
			tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
			var got []string
			for _, table := range tables {
				got = append(got, table.Name)
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("tables %s (%v), want %s", got, err, want)
			}
		}
		err = nft.Transact(func(c *nftables.Conn) error {
			for _, name := range []string{"pod1.2", "pod11.3", "pod2.3", "foreign"} {
				c.CreateTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: name})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, by := range []egressMode{viaMasquerade, viaMasquerade, viaProcess, viaProcess, viaMasqueradeNoSocket, viaMasquerade} {
			if err := createTable(1, by, nft.Families, podRules(1, pool, pool.Addresses(1), by)); err != nil {
				t.Errorf("by %q: %v", by, err)
			}
			has("foreign", tableName(1, by), "pod11.3", "pod2.3")
		}
		if err := deleteTables(map[ipam.Slot]bool{1: true, 2: true, 3: true}); err != nil {
			t.Error(err)
		}
		has("foreign", "pod11.3")
		return deleteTables(map[ipam.Slot]bool{1: true})
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}

// The pods' ends of connections have no pacing timer, where the host permits it.
func TestReno(t *testing.T) {
	err := nsthread.Do(func() error {
		useReno()
		b, err := os.ReadFile("/proc/sys/" + congestionControl)
		kept := errors.Is(procfs.WriteSysctl(congestionControl, "reno"), unix.EPERM) // by the machine's administrator
		if got := strings.TrimSpace(string(b)); got != "reno" && !kept {
			t.Errorf("the algorithm is %q", got)
		}
		return err
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}

func TestEverySlotHasAPort(t *testing.T) {
	if port(ipam.MaxSlot) < portBase || int(port(ipam.MaxSlot)) != portBase+ipam.MaxSlot {
		t.Error("slots have more than the ports there are")
	}
}
