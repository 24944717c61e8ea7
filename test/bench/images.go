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

// imageCost is the cost of images: of fetching one, and of using it.
type imageCost struct {
	Pulls      map[string]map[string]pullCost `json:"pulls"`      // by task, then engine
	UpSyncs    map[string]int                 `json:"upSyncs"`    // calls of fsync and the like of an up; -1 if they could not be counted
	SecondDisk map[string]int64               `json:"secondDisk"` // bytes of disk that a second pod of an image takes
}

// measureImages runs when the pods of other parts are gone.
func (b *bench) measureImages(r *report) error {
	c := &imageCost{UpSyncs: map[string]int{}, SecondDisk: map[string]int64{}}
	for _, e := range b.engines() {
		if err := b.measureLocal(c, e); err != nil {
			return err
		}
	}
	var err error
	if c.Pulls, err = b.measurePulls(); err == nil {
		r.Images = c
	}
	return err
}

// measureLocal measures pods of a local image.
func (b *bench) measureLocal(c *imageCost, e engine) error {
	pod := shapes[0].name
	file, second := b.manifest(pod), b.manifest("second")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(second, []byte(strings.ReplaceAll(string(text), pod, "second")), 0o644); err != nil {
		return err
	}
	before := b.user.processes()
	if _, err := timed(e.up(pod, file)); err != nil {
		return err
	}
	data := filepath.Join(b.work, e.name(), "data")
	err = b.user.atRest(before)
	was := diskOf(data)
	if err == nil {
		_, err = timed(e.up("second", second))
	}
	if err == nil {
		err = b.user.atRest(before)
	}
	c.SecondDisk[e.name()] = diskOf(data) - was
	_, err1 := timed(e.down("second", second))
	_, err2 := timed(e.down(pod, file))
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	c.UpSyncs[e.name()], err = b.upSyncs(e, pod, file)
	return err
}

// upSyncs counts the calls of an up that wait for the disk. The up must not be the engine's first,
// which installs programs.
func (b *bench) upSyncs(e engine, pod, file string) (int, error) {
	trace := filepath.Join(b.work, "trace."+e.name())
	before := b.user.processes()
	traced, err := b.user.traced(e.up(pod, file), syncCalls, trace)
	if traced == nil || err != nil {
		return -1, err
	}
	if err := traced.Start(); err != nil {
		return 0, err
	}
	err = b.user.atRest(before)
	n, err1 := callsIn(trace)
	_, err2 := timed(e.down(pod, file))
	waitTracer(traced)
	return n, errors.Join(err, err1, err2)
}

// waitTracer waits for a tracer until the engine's processes exit, and detaches it if they do not.
func waitTracer(traced *exec.Cmd) {
	killer := time.AfterFunc(time.Minute, func() { traced.Process.Signal(syscall.SIGTERM) })
	traced.Wait()
	killer.Stop()
}

// syncCalls are the calls that wait for the disk.
const syncCalls = "fsync,fdatasync,sync,syncfs,msync,sync_file_range"

// traced returns a command whose named calls, of all its processes, are written to a file. nil:
// only root may trace an engine that calls newuidmap.
func (p *account) traced(cmd *exec.Cmd, calls, file string) (*exec.Cmd, error) {
	strace, err := exec.LookPath("strace")
	if errors.Is(err, exec.ErrNotFound) || !p.switchTo {
		return nil, nil
	}
	args := append([]string{"-f", "-qq", "-u", p.name, "-s", "0", "-e", "trace=" + calls, "-e", "signal=none", "-o", file, cmd.Path}, cmd.Args[1:]...)
	traced := exec.Command(strace, args...)
	traced.Dir, traced.Env = cmd.Dir, cmd.Env
	return traced, err
}

// callsIn counts the lines of a trace that begin a call.
func callsIn(file string) (int, error) {
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

// diskOf returns the disk usage of a directory, in bytes.
func diskOf(dir string) int64 {
	var sum int64
	inodes := map[uint64]bool{}
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has been removed, or this user may not read it
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !inodes[st.Ino] {
			inodes[st.Ino] = true
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum
}

// lines returns the costs as rows of the table.
func (c *imageCost) lines() (lines []string) {
	for _, task := range slices.Sorted(maps.Keys(c.Pulls)) {
		a, b, s := c.Pulls[task]["podrun"], c.Pulls[task]["podman"], c.Pulls[task]["skopeo"]
		lines = append(lines, "\t\t\t\t", fmt.Sprintf("%s of 150 MB in 8 layers\tpodrun\tpodman\tratio\tskopeo copy\t", task),
			fmt.Sprintf("ms\t%.0f\t%.0f\t%s\t%s\t", a.Milliseconds, b.Milliseconds, quotient(a.Milliseconds, b.Milliseconds), figure(s.Milliseconds)),
			fmt.Sprintf("peak PSS in KiB\t%d\t%d\t%s\t%s\t", a.PSS, b.PSS, quotient(float64(a.PSS), float64(b.PSS)), figure(float64(s.PSS))),
			fmt.Sprintf("bytes written\t%d\t%d\t%s\t%s\t", a.Written, b.Written, quotient(float64(a.Written), float64(b.Written)), figure(float64(s.Written))),
			fmt.Sprintf("syncs\t%d\t%d\t%s\t%s\t", a.Syncs, b.Syncs, quotient(float64(a.Syncs), float64(b.Syncs)), figure(float64(s.Syncs))))
	}
	return append(lines, "\t\t\t\t", "an image that is here\tpodrun\tpodman\tratio\t",
		fmt.Sprintf("syncs of an up\t%d\t%d\t%s\t", c.UpSyncs["podrun"], c.UpSyncs["podman"], quotient(float64(c.UpSyncs["podrun"]), float64(c.UpSyncs["podman"]))),
		fmt.Sprintf("bytes of disk, second pod\t%d\t%d\t%s\t", c.SecondDisk["podrun"], c.SecondDisk["podman"], quotient(float64(c.SecondDisk["podrun"]), float64(c.SecondDisk["podman"]))))
}
