package weight

import "testing"

// The numbers are from opencontainers/cgroups v0.1.0 and its tests.
func TestFromShares(t *testing.T) {
	for shares, want := range map[uint64]uint64{
		0: 1, 1: 1, 2: 1, 3: 2, 10: 4, 102: 17, 204: 29, 512: 59, 1024: 100, 2048: 174, 4096: 303,
		262_143: 10_000, 262_144: 10_000, 262_145: 10_000,
	} {
		if got := fromShares(shares); got != want {
			t.Errorf("weight of %d shares: got %d, want %d", shares, got, want)
		}
	}
}
