package memory

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-00401000 r--p 00000000 fe:00 12 /x/podrun
Size:                  4 kB
Pss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
00401000-00900000 r-xp 00001000 fe:00 12 /x/podrun
Size:               5116 kB
Pss:                1200 kB
Pss_Dirty:             0 kB
Anonymous:             0 kB
00900000-00950000 r--p 00500000 fe:00 12 /x/podrun
Pss:                  16 kB
Anonymous:            16 kB
00950000-00960000 rw-p 00550000 fe:00 12 /x/podrun
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 13 /x/other
Anonymous:             0 kB
7ffe00000000-7ffe00021000 r--p 00000000 00:00 0
Anonymous:             0 kB
`

func TestCleanMappings(t *testing.T) {
	want := []mapping{{0x400000, 0x401000}, {0x401000, 0x900000}}
	got := cleanMappings(smaps, "/x/podrun")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("only unwritable mappings of the program without pages of their own (-want +got):\n%s", diff)
	}
}

// The program continues after its pages were released, and no mapping of it is larger than a grain.
func TestShrink(t *testing.T) {
	const grain = 32 << 10
	program := ownProgram{grain: grain}
	program.shrink()
	program.shrink()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	pieces := cleanMappings(string(smaps), exe)
	for _, m := range pieces {
		if m.end-m.start > grain {
			t.Errorf("%x to %x is one piece", m.start, m.end)
		}
	}
	if len(pieces) < 100 {
		t.Errorf("%d pieces of the program", len(pieces))
	}
	TestCleanMappings(t)
}
