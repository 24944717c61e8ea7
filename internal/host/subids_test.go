package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCountOfSubordinateIDs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want uint64
	}{
		{"dev:100000:65536\n", 65536},
		{"1000:100000:65536\n", 65536},
		{"dev:100000:1000\nx:1:2\n1000:300000:500", 1500},
		{"# dev:100000:65536\n", 0},
		{"dev:100000\n", 0},
		{"dev:100000:65536:1\n", 0},
		{"dev:-1:65536\n", 0},
		{"dev:0:65536\n", 0},
		{"dev:100000:x\n", 0},
		{"dev:4294967000:65536\n", 0},
		{"dev:100000:99999999999999999999\n", 0},
		{"dev2:100000:65536\n:1:2\n", 0},
		{"", 0},
	} {
		if got := count(ranges(tt.text, "dev", 1000)); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.text, got, tt.want)
		}
	}
	if got := count(ranges(":100000:65536\n", "", 1000)); got != 0 {
		t.Errorf("a user without a name has %d ids of nobody", got)
	}
}

func TestMapping(t *testing.T) {
	whole := func(v prober) Mapping {
		return Mapping{v.root + "/usr/bin", []Range{{165536, 65536}}, []Range{{165536, 65536}}}
	}
	none := func(prober) Mapping { return Mapping{} }
	for name, tt := range map[string]struct {
		change func(v *prober, files map[string]string)
		want   func(prober) Mapping
	}{
		"all is there":      {func(*prober, map[string]string) {}, whole},
		"root":              {func(v *prober, _ map[string]string) { v.uid = 0 }, none},
		"no subuids":        {func(_ *prober, f map[string]string) { delete(f, "/etc/subuid") }, none},
		"no tool":           {func(_ *prober, f map[string]string) { delete(f, "/usr/bin/newgidmap") }, none},
		"no new privileges": {func(_ *prober, f map[string]string) { f["/proc/self/status"] = "NoNewPrivs:\t1\n" }, none},
		"tools apart": {func(_ *prober, f map[string]string) {
			delete(f, "/usr/bin/newgidmap")
			f["/usr/local/bin/newgidmap"] = ""
		}, none},
	} {
		t.Run(name, func(t *testing.T) {
			files, change := debian(), fake(t, nil)
			tt.change(&change, files)
			v := fake(t, files)
			v.uid = change.uid
			if diff := cmp.Diff(tt.want(v), v.mapping()); diff != "" {
				t.Error(diff)
			}
			want := uint64(1 + len(tt.want(v).UIDs)*65536)
			if v.uid == 0 {
				want = 1 << 32
			}
			if ids := v.podIDs(); ids.Users != want || ids.Groups != want || (ids.Hint == "") != (v.uid == 0) {
				t.Errorf("pods have %+v, want %d of each", ids, want)
			}
		})
	}
}
