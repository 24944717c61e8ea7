package netns

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
)

// A pod has one table, that of what it is now; others' are left alone.
func TestAPodHasOneTable(t *testing.T) {
	err := nsthread.Do(func() error {
		pool, err := ChoosePool(nil)
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
		err = Transact(func(c *nftables.Conn) error {
			for _, name := range []string{"pod1.2", "pod11.3", "pod2.3", "foreign"} {
				c.CreateTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: name})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, by := range []exit{byKernel, byKernel, byProcess, byProcess, byPlainKernel, byKernel} {
			if err := addTable(1, by, families, rules(1, pool, pool.Of(1), by)); err != nil {
				t.Errorf("by %q: %v", by, err)
			}
			has("foreign", tableName(1, by), "pod11.3", "pod2.3")
		}
		if err := delTables(map[Slot]bool{1: true, 2: true, 3: true}); err != nil {
			t.Error(err)
		}
		has("foreign", "pod11.3")
		return delTables(map[Slot]bool{1: true})
	}, testenv.Network(t))
	if err != nil {
		t.Fatal(err)
	}
}

// The pods' ends of connections have no clock between segments, where that may be had.
func TestUnpaced(t *testing.T) {
	err := nsthread.Do(func() error {
		unpace()
		b, err := os.ReadFile("/proc/sys/" + congestionControl)
		kept := errors.Is(sysctl(congestionControl, "reno"), unix.EPERM) // by the machine's administrator
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
	if port(Slots) < firstPort || int(port(Slots)) != firstPort+Slots {
		t.Error("slots have more than the ports there are")
	}
}
