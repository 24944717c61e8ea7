// Command bench compares podrun with podman kube play, in one run and from outside: the same two
// pods, made and removed in turn by both, with public commands only. It prints a table and writes
// all figures as JSON.
//
// scripts/bench starts it, as an unprivileged user or as root; as root it runs both sides as the
// named user, and can read the memory of every process.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
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
	part := flag.String("part", "", "pods, images, starts or scale: measure that alone")
	rounds := flag.Int("rounds", 10, "how often everything is measured")
	out := flag.String("json", "", "where all figures go")
	tools := flag.String("tools", "", "where the programs of test/bench/c are")
	pods := flag.Int("scale", 100, "how many pods at once; 0: none")
	against := flag.String("against", "", "figures of before, a file of -json: what has become worse is told")
	docs := flag.String("docs", "", "write the page, its plot and its figures into this directory")
	network := flag.String("network", "", "the page's part about the network, a file that netbench has written")
	readme := flag.String("readme", "", "write the figures that this file has between its marks, too")
	only := flag.String("only", "", "measure no more: read the figures of this file")
	flag.Parse()
	if *only != "" {
		r, err := load(*only)
		if err != nil {
			return err
		}
		return writeResults(r, *against, pages{*docs, *network, *readme})
	}
	who, err := findAccount(*user)
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
		for _, dir := range []string{work, who.memory} {
			if err := who.removeAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, "bench: remove", dir, ":", err)
			}
		}
	}()
	if err := who.makeMemoryDir(); err != nil {
		return err
	}
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
	r, err := measureAll(who, sides, ours, peer, work, *rootfs, *tools, *part, *rounds, *pods)
	if len(r.Times) > 0 || err == nil { // keep what was measured before an error
		err = errors.Join(err, r.save(*out))
	}
	if err != nil {
		return err
	}
	return writeResults(r, *against, pages{*docs, *network, *readme})
}

// measureAll runs all measurements, or one part.
func measureAll(who *account, sides []engine, ours *podrun, peer *podman, work, rootfs, tools, part string, rounds, pods int) (r report, err error) {
	start, busy := time.Now(), loadNow()
	dir := filepath.Join(work, "pods")
	m := measured{}
	var costs *cost
	if part == "" || part == "pods" {
		if m, err = measure(who, sides, dir, rounds); err != nil {
			return r, err
		}
		// This process adopts the engines' background processes and counts them.
		if err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return r, fmt.Errorf("become a reaper: %w", err)
		}
		if err = m.counted(who, sides, work, dir, rounds); err != nil {
			return r, err
		}
		if costs, err = measureCosts(who, ours, peer, dir); err != nil {
			return r, err
		}
	}
	var images *imageCost
	if part == "" || part == "images" {
		if images, err = measureImages(who, ours, peer, work, rounds); err != nil {
			return r, err
		}
	}
	r = m.report(sides, rounds, 0)
	r.Costs, r.Images, r.Load, r.InMemory = costs, images, busy, who.memory != ""
	if got, err := output(peer.version()); err == nil {
		r.PodmanVersion = strings.TrimSpace(got)
	}
	if tools != "" && (part == "" || part == "starts") {
		s, err := newStarters(who, ours, tools, rootfs, work)
		if err != nil {
			return r, err
		}
		if r.Starts, err = s.measureStarts(rounds); err != nil {
			return r, err
		}
	}
	if pods > 0 && (part == "" || part == "scale") {
		err = r.addScale(who, ours, peer, dir, pods)
	}
	r.Took = time.Since(start).Round(time.Second).String()
	return r, err
}

// loadNow returns the load average of the last minute.
func loadNow() string {
	b, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(b), " ")
	return load
}

func (r *report) addScale(who *account, ours *podrun, peer *podman, dir string, pods int) error {
	scale, theirs, err := measureScale(who, ours, peer, dir, pods)
	if err != nil {
		return err
	}
	r.Scale = scale
	for n, s := range scale.Ps {
		task := psTask(n)
		if _, measured := r.Times[task]; measured { // with single pods, more often
			continue
		}
		put(r.Times, task, ours.name(), s)
		put(r.Times, task, peer.name(), theirs[n])
	}
	return nil
}

// writeResults prints the figures and their changes since an earlier run; with docs it writes the
// page.
func writeResults(r report, against string, to pages) error {
	r.print(os.Stdout)
	if err := r.write(to); err != nil {
		return err
	}
	if against == "" {
		return nil
	}
	then, err := load(against)
	if err != nil {
		return err
	}
	lines, regressions := compare(then.ratios(), r.ratios())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nratios since %s\tthen\tnow\t\t\t\n%s\n", then.When.Format(time.DateTime), strings.Join(lines, "\n"))
	w.Flush()
	fmt.Printf("%d of %d ratios are worse by more than %.0f %%\n", regressions, len(lines), 100*(regressionFactor-1))
	if list := differences(then, r); len(list) > 0 {
		fmt.Printf("The two runs are not alike, which alone may be why: %s.\n", strings.Join(list, "; "))
	}
	return nil
}
