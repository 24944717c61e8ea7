package image

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/internal/testenv"
)

// TestUnpackInParts: for any number of parts the unpacked layer is the same, and so are the times of
// directories into which later parts put files.
func TestUnpackInParts(t *testing.T) {
	testenv.NoLeaks(t)
	then := time.Unix(1234567890, 0)
	var entries []f
	for i := range 10 {
		d := fmt.Sprintf("d%d/", i%3)
		entries = append(entries,
			f{Name: d, Time: then, Mode: 0o755}, f{Name: d + fmt.Sprint("f", i), Content: strings.Repeat("x", i*300)},
			f{Name: fmt.Sprint("d0/l", i), Link: "f0"}, f{Name: fmt.Sprint("d1/h", i), Type: tar.TypeLink, Link: "d0/f0"})
	}
	entries = append(entries, f{Name: "past/", Time: time.Unix(-5, 0)}, f{Name: "past/f", Content: "x"},
		f{Name: "d2/", Time: then.Add(time.Hour)}, f{Name: "lost/", Time: then}, f{Name: "lost", Content: "a file"},
		f{Name: "d2/.wh.f2"}, f{Name: "d0/.wh.none"})
	layers := map[string][]byte{"plain": layerTar(t, entries...), "odd": odd(t), "sparse": holes(t)}
	for name, tarStream := range layers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want tree
			for _, part := range []int{layer.DefaultPartEntries, 1, 2, 3, 7} {
				s := newStore(t)
				s.Part = part
				got := load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{tarStream}}).path())
				is := inUserns(t, "_tree", got.Layers[0])
				for _, dir := range []string{"d0", "d1", "d2", "past", "etc", "lost"} {
					if st, err := os.Lstat(filepath.Join(got.Layers[0], dir)); err == nil {
						is["time of "+dir] = fmt.Sprint(st.ModTime().Unix())
					}
				}
				if part == layer.DefaultPartEntries {
					want = is
				}
				if diff := cmp.Diff(want, is); diff != "" {
					t.Errorf("in parts of %d (-whole +got):\n%s", part, diff)
				}
				if found, err := s.Verify(context.Background(), nil, nil); err != nil || len(found) != 1 || len(found[0].Damage) > 0 {
					t.Errorf("in parts of %d: %+v, %v", part, found, err)
				}
			}
			if name == "plain" && (want["time of d0"] != fmt.Sprint(then.Unix()) || want["time of d2"] != fmt.Sprint(then.Add(time.Hour).Unix())) {
				t.Errorf("d0 is of %s, d2 of %s", want["time of d0"], want["time of d2"])
			}
		})
	}
}
