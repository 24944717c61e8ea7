package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// imageCost is what images cost: to bring one in, and once it is there.
type imageCost struct {
	Pulls      map[string]map[string]pullCost `json:"pulls"`      // by task, then engine
	UpSyncs    map[string]int                 `json:"upSyncs"`    // calls of fsync and the like of an up; -1 if they could not be counted
	SecondDisk map[string]int64               `json:"secondDisk"` // bytes of disk that a second pod of an image takes
}

// measureImages runs after measureCosts, whose pods are gone.
func measureImages(who *person, ours *podrun, peer *podman, work string, rounds int) (*imageCost, error) {
	c := &imageCost{UpSyncs: map[string]int{}, SecondDisk: map[string]int64{}}
	for _, e := range []engine{ours, peer} {
		if err := c.here(who, e, work); err != nil {
			return nil, err
		}
	}
	var err error
	c.Pulls, err = measurePulls(who, ours, peer, work, rounds)
	return c, err
}

// here measures pods of an image that is on the machine.
func (c *imageCost) here(who *person, e engine, work string) error {
	pod := shapes[0].name
	file := filepath.Join(work, "pods", pod+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	second := filepath.Join(work, "pods", "second.yaml")
	if err := os.WriteFile(second, []byte(strings.ReplaceAll(string(text), pod, "second")), 0o644); err != nil {
		return err
	}
	before := who.processes()
	if _, err := timed(e.up(pod, file)); err != nil {
		return err
	}
	data := filepath.Join(work, e.name(), "data")
	err = who.atRest(before)
	was := diskOf(data)
	if err == nil {
		_, err = timed(e.up("second", second))
	}
	if err == nil {
		err = who.atRest(before)
	}
	c.SecondDisk[e.name()] = diskOf(data) - was
	_, err1 := timed(e.down("second", second))
	_, err2 := timed(e.down(pod, file))
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	c.UpSyncs[e.name()], err = upSyncs(who, e, work, pod, file)
	return err
}

// upSyncs counts the calls of an up that wait for the disk. It is not the engine's first,
// which puts programs in their place.
func upSyncs(who *person, e engine, work, pod, file string) (int, error) {
	trace := filepath.Join(work, "trace."+e.name())
	before := who.processes()
	traced, err := who.traced(e.up(pod, file), trace)
	if traced == nil || err != nil {
		return -1, err
	}
	if err := traced.Start(); err != nil {
		return 0, err
	}
	err = who.atRest(before)
	n, err1 := countSyncs(trace)
	_, err2 := timed(e.down(pod, file))
	time.AfterFunc(time.Minute, func() { traced.Process.Signal(syscall.SIGTERM) }) // it lets go of what it traces
	traced.Wait()
	return n, errors.Join(err, err1, err2)
}

// traced is a command with its calls that wait for the disk written to a file. nil: only
// root may trace an engine that calls newuidmap.
func (p *person) traced(cmd *exec.Cmd, file string) (*exec.Cmd, error) {
	strace, err := exec.LookPath("strace")
	if errors.Is(err, exec.ErrNotFound) || !p.switchTo {
		return nil, nil
	}
	words := append([]string{"-f", "-qq", "-u", p.name, "-e", "trace=fsync,fdatasync,sync,syncfs,msync,sync_file_range", "-e", "signal=none", "-o", file, cmd.Path}, cmd.Args[1:]...)
	traced := exec.Command(strace, words...)
	traced.Dir, traced.Env = cmd.Dir, cmd.Env
	return traced, err
}

func countSyncs(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "(") && !strings.Contains(lines.Text(), "resumed>") {
			n++
		}
	}
	return n, lines.Err()
}

// diskOf is what a directory takes of the disk, in bytes.
func diskOf(dir string) int64 {
	var sum int64
	seen := map[uint64]bool{}
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has gone, or is not for this user
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
			seen[st.Ino] = true
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}

// lines are the costs as rows of the table.
func (c *imageCost) lines() (lines []string) {
	for _, task := range slices.Sorted(maps.Keys(c.Pulls)) {
		a, b, s := c.Pulls[task]["podrun"], c.Pulls[task]["podman"], c.Pulls[task]["skopeo"]
		lines = append(lines, "\t\t\t\t", fmt.Sprintf("%s of 150 MB in 8 layers\tpodrun\tpodman\tratio\tskopeo copy", task),
			fmt.Sprintf("ms\t%.0f\t%.0f\t%.2f\t%.0f", a.Milliseconds, b.Milliseconds, a.Milliseconds/b.Milliseconds, s.Milliseconds),
			fmt.Sprintf("peak PSS in KiB\t%d\t%d\t%.2f\t%d", a.PSS, b.PSS, float64(a.PSS)/float64(b.PSS), s.PSS),
			fmt.Sprintf("bytes written\t%d\t%d\t%.2f\t%d", a.Written, b.Written, float64(a.Written)/float64(max(b.Written, 1)), s.Written),
			fmt.Sprintf("syncs\t%d\t%d\t\t%d", a.Syncs, b.Syncs, s.Syncs))
	}
	return append(lines, "\t\t\t\t", "an image that is here\tpodrun\tpodman\tratio\t",
		fmt.Sprintf("syncs of an up\t%d\t%d\t\t", c.UpSyncs["podrun"], c.UpSyncs["podman"]),
		fmt.Sprintf("bytes of disk, second pod\t%d\t%d\t%.2f\t", c.SecondDisk["podrun"], c.SecondDisk["podman"], float64(c.SecondDisk["podrun"])/float64(max(c.SecondDisk["podman"], 1))))
}
