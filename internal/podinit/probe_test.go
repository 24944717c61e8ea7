package podinit

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/reexec/cparser"
)

const parsers = "../reexec/nsenter/testdata/parse.c"

var testProbes = []Probe{
	{Next: 5, Period: 6, Timeout: 7, Server: netip.MustParseAddrPort("127.0.0.1:80"), Request: "GET / HTTP/1.1\r\n\r\n"},
	{Next: 8, Period: 9, Timeout: 10, Counter: 11, Server: netip.MustParseAddrPort("[::1]:65535"), HostNet: true},
	{Config: []byte("config"), Target: "c", Args: []string{"podrun", "true", ""}, Env: []string{"A=b"}},
}

// A prober reads what the supervisor has written, and nothing outside of a damaged table.
func TestTableOfProbes(t *testing.T) {
	p := cparser.New(t, parsers)
	table, err := encodeProbes(testProbes)
	if err != nil {
		t.Fatal(err)
	}
	want := "5 6 7 2 1 80 0 text GET / HTTP/1.1\r\n\r\n\n8 9 10 10 0 65535 11 text\n0 0 0 0 1 0 0 text config strings 1 podrun true  A=b"
	if got := strings.ReplaceAll(strings.Join(p.Parse(t, 't', table), "\n"), "text \n", "text\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	binary.NativeEndian.PutUint64(table[8:], 42) // the first prober's latest success
	if last, err := decodeProbes(table); err != nil || !slices.Equal(last, []time.Duration{42, 0, 0}) {
		t.Errorf("latest successes %v, %v", last, err)
	}
	for range 300 {
		damaged := bytes.Clone(table[:rand.IntN(len(table))+1])
		for range rand.IntN(4) {
			damaged[rand.IntN(len(damaged))] = byte(rand.Uint32())
		}
		p.Parse(t, 't', damaged)
		decodeProbes(damaged)
	}
}

func TestTableOfProbesHasNoNUL(t *testing.T) {
	if _, err := encodeProbes([]Probe{{Args: []string{"a\x00b"}}}); err == nil {
		t.Error("a NUL in an argument is encoded")
	}
}

func FuzzTableOfProbes(f *testing.F) {
	p := cparser.New(f, parsers)
	table, err := encodeProbes(testProbes)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(table)
	f.Fuzz(func(t *testing.T, table []byte) {
		records := p.Parse(t, 't', table)
		if last, err := decodeProbes(table); err == nil && len(last) < len(records) {
			t.Errorf("a prober reads %d probes, the supervisor %d", len(records), len(last))
		}
	})
}
