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
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/test/internal/measure"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of the comparison.
type bench struct {
	rounds int
	part   string // measure that alone; "": everything
	scale  int    // how many pods at once; 0: none
	rootfs string // the example image's root file system, a tar
	tools  string // where the programs of test/bench/c are; "": do not measure starts

	user  *account
	ours  *podrun
	peer  *podman
	alone bool   // there is no peer
	work  string // directory of all files
}

func run() error {
	var b bench
	podrun := flag.String("podrun", "", "the podrun binary")
	flag.StringVar(&b.rootfs, "rootfs", "", "the example image's root file system, a tar")
	account := flag.String("user", "", "as root: the ordinary user to run both sides as")
	flag.StringVar(&b.part, "part", "", "pods, images, disks, starts or scale: measure that alone")
	flag.IntVar(&b.rounds, "rounds", 10, "how often everything is measured")
	out := flag.String("json", "", "the file to write all figures to")
	flag.StringVar(&b.tools, "tools", "", "where the programs of test/bench/c are")
	flag.IntVar(&b.scale, "scale", 300, "how many pods at once; 0: none")
	against := flag.String("against", "", "earlier figures, a file of -json: print what has become worse")
	docs := flag.String("docs", "", "write the page, its plot and its figures into this directory")
	network := flag.String("network", "", "the directory of netbench's page and figures, for the page")
	top := flag.String("top", "", "write summaries between the marks of documents of this checkout")
	only := flag.String("only", "", "measure nothing: read the figures of this file")
	expected := flag.String("expected", "", "only count what podrun's commands do, and compare it with this file")
	update := flag.Bool("update", false, "with -expected: write the file")
	flag.Parse()
	to := pages{*docs, *network, *top}
	if *only != "" {
		r, err := load(*only)
		if err != nil {
			return err
		}
		return writeResults(r, *against, to)
	}
	defer b.close()
	b.alone = *expected != ""
	if err := b.prepare(*podrun, *account); err != nil {
		return err
	}
	if b.alone {
		return b.check(*expected, *update)
	}
	r, err := b.measure()
	if len(r.Times) > 0 || err == nil { // keep what was measured before an error
		err = errors.Join(err, measure.Save(*out, r))
	}
	if err != nil {
		return err
	}
	return writeResults(r, *against, to)
}

// prepare makes the directories and the manifests, and prepares both engines.
func (b *bench) prepare(binary, name string) (err error) {
	if b.user, err = findAccount(name); err != nil {
		return err
	}
	if b.work, err = os.MkdirTemp("", "podrun-bench-"); err != nil {
		return err
	}
	if err := os.Chown(b.work, int(b.user.uid), int(b.user.gid)); err != nil {
		return err
	}
	if err := b.user.makeMemoryDir(); err != nil {
		return err
	}
	if err := writePods(b.work); err != nil {
		return err
	}
	b.ours = newPodrun(b.user, b.work, binary)
	if b.alone {
		b.ours.env = append(b.ours.env, hibernateAfter+awakeFor)
	} else {
		path, err := findPodman(os.Getenv("PODMAN"), podmanDirectories(os.Getenv("PATH")))
		if err != nil {
			return err
		}
		b.peer = newPodman(b.user, b.work, path, os.Getenv("RUNTIME"))
	}
	for _, e := range b.engines() {
		if err := e.prepare(b.rootfs); err != nil {
			return fmt.Errorf("prepare %s: %w", e.name(), err)
		}
	}
	if b.peer != nil {
		version, _ := b.peer.version().Output()
		fmt.Printf("%s: %s with %s\n", b.peer.binary, strings.TrimSpace(string(version)), b.peer.runtimeVersion())
	}
	return nil
}

// close stops the engines and removes all files. It accepts what prepare has half made.
func (b *bench) close() {
	if b.ours != nil && (b.alone || b.peer != nil) {
		for _, e := range b.engines() {
			e.close()
		}
	}
	if b.work == "" {
		return
	}
	podman := "podman"
	if b.peer != nil {
		podman = b.peer.binary
	}
	if err := errors.Join(b.user.removeAll(b.work, podman), b.user.removeAll(b.user.memory, podman)); err != nil {
		fmt.Fprintln(os.Stderr, "bench: remove files:", err)
	}
}

func (b *bench) engines() []engine {
	if b.alone {
		return []engine{b.ours}
	}
	return []engine{b.ours, b.peer}
}

// manifest returns the path of a pod's manifest.
func (b *bench) manifest(pod string) string { return filepath.Join(b.work, "pods", pod+".yaml") }

// measure runs all parts, or one.
func (b *bench) measure() (report, error) {
	start := time.Now()
	r := b.newReport()
	for _, p := range []struct {
		name string
		run  func(*report) error
	}{{"pods", b.measurePods}, {"images", b.measureImages}, {"disks", b.measureDisks}, {"starts", b.measureStarts}, {"scale", b.measureScale}} {
		var err error
		if b.part == "" || b.part == p.name {
			err = p.run(&r)
		}
		r.Took = time.Since(start).Round(time.Second).String()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// adoptOrphans makes this process the parent of the engines' background processes, so that it counts them.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// loadNow returns the load average of the last minute.
func loadNow() string {
	b, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(b), " ")
	return load
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
	w := measure.Columns(os.Stdout)
	fmt.Fprintf(w, "\nratios since %s\tthen\tnow\t\t\t\n%s\n", then.When.Format(time.DateTime), strings.Join(lines, "\n"))
	w.Flush()
	fmt.Printf("%d of %d ratios are worse by more than %.0f %%\n", regressions, len(lines), 100*(regressionFactor-1))
	if list := differences(then, r); len(list) > 0 {
		fmt.Printf("The two runs are not alike, which alone may be why: %s.\n", strings.Join(list, "; "))
	}
	return nil
}
