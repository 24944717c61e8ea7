package image

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhiteouts mounts the layers as pods do and compares the content.
func TestWhiteouts(t *testing.T) {
	base := []f{
		{Name: "d/"}, {Name: "d/a", Content: "old"}, {Name: "d/b", Content: "old"},
		{Name: "file", Content: "old"}, {Name: "link", Link: "file"},
	}
	whole := tree{
		"d": "dir 0755 0:0", "d/a": "file 0644 0:0 old", "d/b": "file 0644 0:0 old",
		"file": "file 0644 0:0 old", "link": "link file",
	}
	for name, tt := range map[string]struct {
		upper [][]f // above base
		want  tree  // nil: absent; others as in base
	}{
		"file":                       {[][]f{{{Name: ".wh.file"}}}, tree{"file": ""}},
		"symbolic link":              {[][]f{{{Name: ".wh.link"}}}, tree{"link": ""}},
		"directory":                  {[][]f{{{Name: ".wh.d"}}}, tree{"d": "", "d/a": "", "d/b": ""}},
		"in an implied directory":    {[][]f{{{Name: "d/.wh.a"}}}, tree{"d/a": ""}},
		"twice":                      {[][]f{{{Name: ".wh.file"}, {Name: ".wh.file"}}}, tree{"file": ""}},
		"then back":                  {[][]f{{{Name: ".wh.file"}}, {{Name: "file", Content: "new"}}}, tree{"file": "file 0644 0:0 new"}},
		"file and again":             {[][]f{{{Name: ".wh.file"}, {Name: "file", Content: "new"}}}, tree{"file": "file 0644 0:0 new"}},
		"again and file":             {[][]f{{{Name: "file", Content: "new"}, {Name: ".wh.file"}}}, tree{"file": "file 0644 0:0 new"}},
		"directory and again":        {[][]f{{{Name: ".wh.d"}, {Name: "d/"}, {Name: "d/c", Content: "new"}}}, tree{"d/a": "", "d/b": "", "d/c": "file 0644 0:0 new"}},
		"again and directory":        {[][]f{{{Name: "d/"}, {Name: "d/c", Content: "new"}, {Name: ".wh.d"}}}, tree{"d/a": "", "d/b": "", "d/c": "file 0644 0:0 new"}},
		"directory, implied again":   {[][]f{{{Name: ".wh.d"}, {Name: "d/c", Content: "new"}}}, tree{"d/a": "", "d/b": "", "d/c": "file 0644 0:0 new"}},
		"directory becomes file":     {[][]f{{{Name: "d", Content: "new"}}}, tree{"d": "file 0644 0:0 new", "d/a": "", "d/b": ""}},
		"opaque":                     {[][]f{{{Name: "d/"}, {Name: "d/.wh..wh..opq"}, {Name: "d/c", Content: "new"}}}, tree{"d/a": "", "d/b": "", "d/c": "file 0644 0:0 new"}},
		"opaque last":                {[][]f{{{Name: "d/c", Content: "new"}, {Name: "d/.wh..wh..opq"}}}, tree{"d/a": "", "d/b": "", "d/c": "file 0644 0:0 new"}},
		"opaque, two layers up":      {[][]f{{{Name: "d/c", Content: "new"}}, {{Name: "d/.wh..wh..opq"}}}, tree{"d/a": "", "d/b": ""}},
		"opaque root":                {[][]f{{{Name: ".wh..wh..opq"}, {Name: "n", Content: "new"}}}, tree{"d": "", "d/a": "", "d/b": "", "file": "", "link": "", "n": "file 0644 0:0 new"}},
		"opaque and whiteout":        {[][]f{{{Name: "d/.wh..wh..opq"}, {Name: "d/.wh.a"}}}, tree{"d/a": "", "d/b": ""}},
		"replaced afterwards":        {[][]f{{{Name: "d/.wh.a"}, {Name: "d", Content: "new"}}}, tree{"d": "file 0644 0:0 new", "d/a": "", "d/b": ""}},
		"aufs' own":                  {[][]f{{{Name: ".wh..wh.plnk/"}, {Name: ".wh..wh.aufs"}}}, tree{}},
		"root's attributes":          {[][]f{{{Name: "./", Mode: 0o711}}}, tree{}},
		"the same layer once more":   {[][]f{{{Name: ".wh.file"}}, base}, tree{}},
		"the same layer three times": {[][]f{{{Name: ".wh.file"}}, base, {{Name: ".wh.file"}}}, tree{"file": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layers := [][]byte{layerTar(t, base...)}
			for _, entries := range tt.upper {
				layers = append(layers, layerTar(t, entries...))
			}
			got := load(t, newStore(t), newLayout(t).add(img{Name: "w", Layers: layers}).path())
			want := tree{".": "dir 0755 0:0"}
			for _, part := range []tree{whole, tt.want} {
				for path, line := range part {
					want[path] = line
					if line == "" {
						delete(want, path)
					}
				}
			}
			if diff := cmp.Diff(want, merged(t, got.Layers)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhiteoutKeepsTimes checks that making a whiteout does not change its directory's times.
func TestWhiteoutKeepsTimes(t *testing.T) {
	got := load(t, newStore(t), newLayout(t).add(img{Name: "w", Layers: [][]byte{
		layerTar(t, f{Name: "d/"}, f{Name: "d/x"}),
		layerTar(t, f{Name: "d/"}, f{Name: "d/.wh.x"}),
	}}).path())
	for _, layer := range got.Layers {
		if moment := modTime(t, layer+"/d"); moment != 1700000000 {
			t.Errorf("%s/d is of %d", layer, moment)
		}
	}
}
