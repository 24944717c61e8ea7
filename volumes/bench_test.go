package volumes

import (
	"fmt"
	"path/filepath"
	"testing"
)

func BenchmarkMountRootfs(b *testing.B) {
	for _, n := range []int{1, 5, 60} {
		b.Run(fmt.Sprintf("layers=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			var layers []string
			for i := range n {
				layer := filepath.Join(dir, fmt.Sprint(i))
				mkdir(b, layer)
				layers = append(layers, layer)
			}
			fs := filepath.Join(dir, "fs")
			for b.Loop() {
				_, err := MountRootfs(fs, layers, false, "")
				b.StopTimer()
				must(b, err)
				must(b, UnmountRootfs(fs))
				b.StartTimer()
			}
		})
	}
}

func BenchmarkUnmountRootfs(b *testing.B) {
	dir := b.TempDir()
	layer, fs := filepath.Join(dir, "layer"), filepath.Join(dir, "fs")
	mkdir(b, layer)
	for b.Loop() {
		b.StopTimer()
		_, err := MountRootfs(fs, []string{layer}, false, "")
		must(b, err)
		b.StartTimer()
		must(b, UnmountRootfs(fs))
	}
}

func BenchmarkProbeOverlay(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		must(b, ProbeOverlay(dir))
	}
}

func BenchmarkSharedMounts(b *testing.B) {
	s, _ := pod(b)
	for b.Loop() {
		b.StopTimer()
		must(b, s.Unmount())
		b.StartTimer()
		_, err := s.Mount()
		must(b, err)
	}
}

func BenchmarkMountDev(b *testing.B) {
	_, shared := pod(b)
	dev := filepath.Join(b.TempDir(), "dev")
	for b.Loop() {
		err := shared.MountDev(dev)
		b.StopTimer()
		must(b, err)
		must(b, UnmountDev(dev))
		b.StartTimer()
	}
}
