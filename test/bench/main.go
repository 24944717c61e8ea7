// Command bench compares podrun with podman kube play, in one run and from
// outside: the same two pods, made and removed in turn by both, with public
// commands only. It prints a table and writes all figures as JSON.
//
// It is started by scripts/bench, as an ordinary user or as root; root runs both
// sides as the user that is named, and can read the memory of every process.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	podrun := flag.String("podrun", "", "the podrun binary")
	rootfs := flag.String("rootfs", "", "the example image's root file system, a tar")
	user := flag.String("user", "", "as root: the ordinary user to run both sides as")
	part := flag.String("part", "", "pods or images: measure that alone")
	rounds := flag.Int("rounds", 10, "how often everything is measured")
	out := flag.String("json", "", "where all figures go")
	flag.Parse()

	who, err := account(*user)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "podrun-bench-")
	if err != nil {
		return err
	}
	if err := os.Chown(work, int(who.uid), int(who.gid)); err != nil {
		return err
	}
	defer func() {
		if err := who.removeAll(work); err != nil {
			fmt.Fprintln(os.Stderr, "bench: remove", work, ":", err)
		}
	}()
	if err := writePods(work); err != nil {
		return err
	}
	ours, peer := newPodrun(who, work, *podrun), newPodman(who, work)
	sides := []engine{ours, peer}
	for _, e := range sides {
		defer e.close()
		if err := e.prepare(*rootfs); err != nil {
			return fmt.Errorf("prepare %s: %w", e.name(), err)
		}
	}
	start := time.Now()
	m := measured{}
	var costs *cost
	if *part != "images" {
		if m, err = measure(who, sides, filepath.Join(work, "pods"), *rounds); err != nil {
			return err
		}
		if costs, err = measureCosts(who, ours, peer, filepath.Join(work, "pods")); err != nil {
			return err
		}
	}
	var images *imageCost
	if *part != "pods" {
		if images, err = measureImages(who, ours, peer, work, *rounds); err != nil {
			return err
		}
	}
	r := m.report(sides, *rounds, time.Since(start))
	r.Costs, r.Images = costs, images
	r.print(os.Stdout)
	return r.save(*out)
}
