package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// TestDiskOfEverySize loads and pulls an image onto disks of every size from too small to large enough, in
// pages and in inodes. At whichever write the disk is full: nothing of the image is listed or left behind,
// the error has a hint, and the earlier images can be listed, verified and removed.
func TestDiskOfEverySize(t *testing.T) {
	testenv.NoLeaks(t)
	var entries []f
	for i := range 30 {
		entries = append(entries, f{Name: fmt.Sprintf("d%d/f", i), Content: strings.Repeat("x", 5000)})
	}
	l := newLayout(t).add(img{Name: "big:1", Layers: [][]byte{layerTar(t, entries...), layerTar(t, f{Name: "top", Content: "t"})}})
	small := newLayout(t).add(img{Name: "small:1", Layers: [][]byte{layerTar(t, f{Name: "s", Content: "s"})}}).path()
	_, repo := newFake(t, l)
	for name, from := range map[string]string{"load": l.path(), "pull": repo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := "some"
			if os.Getenv(fuzzedEnv) != "" {
				times = "each"
			}
			cmd := reexec.Command(reexec.Spec{Name: "_full", Args: []string{tempDir(t), small, from, times}, Userns: true})
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// fullEntry is TestDiskOfEverySize in namespaces of its own: scripts/torture tries every page and every
// inode.
func fullEntry(args []string) int {
	for _, tt := range []struct {
		disk               string
		first, step, least int
	}{{"size=%dk", 64, 12, 10}, {"size=8m,nr_inodes=%d", 24, 4, 10}} {
		failed, done := 0, false
		if args[3] == "each" {
			tt.step = map[int]int{12: 4, 4: 1}[tt.step]
		}
		for size := tt.first; !done; size += tt.step {
			var err error
			disk := fmt.Sprintf(tt.disk, size)
			if done, err = fill(args[0], disk, args[1], args[2]); err != nil {
				fmt.Printf("with %s: %v\n", disk, err)
				return 1
			}
			if !done {
				failed++
			}
		}
		fmt.Printf("%s: %d times the disk was full\n", strings.TrimSuffix(tt.disk, "=%d"), failed)
		if failed < tt.least {
			return 1
		}
	}
	return 0
}

// fill reports whether the image fits a disk of that size.
func fill(dir, disk, small, big string) (bool, error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, disk); err != nil {
		return false, fmt.Errorf("mount a small disk: %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	s, err := openStore(filepath.Join(dir, "images"))
	if err != nil {
		return false, err
	}
	s.Limits = func(string) (layer.Limits, error) { return layer.Limits{Bytes: 1 << 30, Entries: 1 << 20}, nil }
	s.Retry = shortPatience()
	ctx := context.Background()
	before, err := s.Load(ctx, small)
	if err != nil {
		return false, fullSays(err)
	}
	if filepath.IsAbs(big) {
		_, err = s.Load(ctx, big)
	} else {
		_, err = s.Pull(ctx, big, api.PullOptions{})
	}
	if err != nil {
		if bad := fullSays(err); bad != nil {
			return false, bad
		}
	}
	loaded := err == nil
	junk, err := os.Create(filepath.Join(dir, "junk")) // fills the disk completely
	if err != nil {
		return false, fullSays(err)
	}
	defer junk.Close()
	for b := make([]byte, 4096); err == nil; {
		_, err = junk.Write(b)
	}
	list, err := s.List()
	if want := map[bool]int{true: 2, false: 1}[loaded]; err != nil || len(list) != want {
		return false, fmt.Errorf("%d images are listed, want %d: %w", len(list), want, err)
	}
	found, err := s.Verify(ctx, nil, nil)
	for _, v := range found {
		if len(v.Damage) > 0 {
			return false, fmt.Errorf("%s is not whole: %v", v.Name(), v.Damage)
		}
	}
	if err != nil {
		return false, err
	}
	if err := s.Remove(before[0].Name, RemoveOptions{}); err != nil {
		return false, err
	}
	if _, err := s.Prune(PruneOptions{All: true}); err != nil {
		return false, err
	}
	for _, d := range []string{records.LayersDir, records.ImagesDir, records.NamesDir, "retired"} {
		if left, err := os.ReadDir(filepath.Join(s.Dir, d)); err != nil || len(left) > 0 {
			return false, fmt.Errorf("left in %s: %v, %w", d, left, err)
		}
	}
	return loaded, nil
}

// fullSays returns a description of what is wrong with the error of a full disk, or "".
func fullSays(err error) error {
	if !errors.Is(err, unix.ENOSPC) && !strings.Contains(err.Error(), unix.ENOSPC.Error()) || report.Hint(err) == "" {
		return fmt.Errorf("an error without a cause or a hint: %w", err)
	}
	return nil
}
