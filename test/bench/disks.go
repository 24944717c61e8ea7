package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/test/internal/measure"
)

const (
	diskSize  = 2 << 30
	readAhead = 128 // KiB, as with an SD card

	readOf  = "read from a cold disk, " // begins the names of its measurements
	firstUp = "first up, 1 container"
)

// disksNote is the page's text about disks.
const disksNote = `
*Read from a cold disk*: both engines' programs, images and files are on a file system of their own, of which nothing is in memory, with a
read-ahead of 128 KiB. The machine's shared libraries are not on it; podman needs some, podrun needs none. *Slow syncs*: each fsync, fdatasync,
syncfs and sync waits 5 ms longer, except for files in memory.
`

// measureDisks measures what a disk is to the first start: how much is read of a cold one, and the time with slow syncs.
// It runs when pods of other parts are gone.
func (b *bench) measureDisks(r *report) error {
	if !b.user.switchTo {
		fmt.Fprintln(os.Stderr, "bench: no figures of a cold disk and of slow syncs: only root can measure them")
		return nil
	}
	if err := nsthread.Do(delaySyncs); err != nil { // Linux before 5.19
		fmt.Fprintln(os.Stderr, "bench: no figures of slow syncs:", err)
	} else if err := b.measureSlowSyncs(r); err != nil {
		return fmt.Errorf("measure slow syncs: %w", err)
	}
	// No other process gets a copy of the mount, which would keep the file system's pages in memory.
	err := nsthread.Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		return b.measureColdDisk(r)
	})
	if err != nil {
		return fmt.Errorf("measure a cold disk: %w", err)
	}
	return nil
}

// coldDisk is a file system on a loop device, with an engine's programs, image and data.
type coldDisk struct{ file, dir, device string }

// measureColdDisk measures the engines, each with a disk of its own.
func (b *bench) measureColdDisk(r *report) error {
	user := *b.user
	if user.memory != "" {
		user.memory = filepath.Join(user.memory, "cold")
		if err := errors.Join(os.Mkdir(user.memory, 0o755), os.Chown(user.memory, int(user.uid), int(user.gid))); err != nil {
			return err
		}
	}
	for _, e := range b.engines() {
		d := &coldDisk{file: filepath.Join(b.work, "disk."+e.name()), dir: filepath.Join(b.work, "cold."+e.name())}
		if err := d.make(); err != nil { // root of a container has no loop devices
			fmt.Fprintln(os.Stderr, "bench: no figures of a cold disk:", err)
			return nil
		}
		read := map[string][]float64{}
		on, err := b.onDisk(d, &user, e)
		if err == nil {
			err = measure.Rounds("bench: cold disk, "+e.name(), 0, min(b.rounds, restRounds), func(round int) error {
				return d.once(&user, on, round, read)
			})
		}
		if err != nil {
			on.close()
		}
		if err := errors.Join(err, d.unmount()); err != nil {
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		for command, list := range read {
			put(r.Read, command, e.name(), summaryOf(list))
		}
	}
	return nil
}

// once adds what is read in a round. Round 0 prepares: the engine installs programs and makes layers.
func (d *coldDisk) once(user *account, on engine, round int, read map[string][]float64) error {
	if round == 0 {
		_, err := d.readByUp(user, on)
		return err
	}
	for command, run := range map[string]func(*account, engine) (float64, error){"--version": d.readByVersion, firstUp: d.readByUp} {
		if err := d.forget(); err != nil {
			return err
		}
		mib, err := run(user, on)
		if err != nil {
			return err
		}
		read[command] = append(read[command], mib)
	}
	return nil
}

// onDisk returns an engine like e, even if it fails, whose programs, image and data are on the disk.
func (b *bench) onDisk(d *coldDisk, user *account, e engine) (engine, error) {
	programs := filepath.Join(d.dir, "programs")
	var on engine
	var paths []string // of the programs on the machine's own disk
	if e == engine(b.ours) {
		on, paths = newPodrun(user, d.dir, filepath.Join(programs, filepath.Base(b.ours.binary))), []string{b.ours.binary}
	} else {
		p := newPodman(user, d.dir, filepath.Join(programs, filepath.Base(b.peer.binary)), "")
		on, paths, p.helpers = p, []string{b.peer.binary}, programs
		if b.peer.runtime != "" {
			p.runtime, paths = filepath.Join(programs, filepath.Base(b.peer.runtime)), append(paths, b.peer.runtime)
		}
		for _, name := range helperPrograms {
			if path := find(name, helperDirectories); path != "" {
				paths = append(paths, path)
			}
		}
	}
	if err := errors.Join(writePods(d.dir), os.Mkdir(programs, 0o755)); err != nil {
		return on, err
	}
	for _, path := range paths {
		if err := copyProgram(path, filepath.Join(programs, filepath.Base(path))); err != nil {
			return on, err
		}
	}
	return on, on.prepare(b.rootfs)
}

// find returns the path of a program in directories, or "".
func find(name string, directories []string) string {
	for _, dir := range directories {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

func copyProgram(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// make makes and mounts the file system. Its tables are complete: the kernel does nothing on it later.
func (d *coldDisk) make() error {
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(d.file, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(d.file, diskSize); err != nil {
		return err
	}
	if _, err := timed(exec.Command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.file)); err != nil {
		return err
	}
	return d.mount()
}

func (d *coldDisk) mount() error {
	if _, err := timed(exec.Command("mount", "-o", "loop,noatime", d.file, d.dir)); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(d.dir, &st); err != nil {
		return err
	}
	d.device = fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	return os.WriteFile(d.device+"/queue/read_ahead_kb", []byte(strconv.Itoa(readAhead)), 0o644)
}

// unmount returns when the device is free: then no process and no namespace that ends has the file system, and the
// kernel has no pages of it.
func (d *coldDisk) unmount() error {
	if _, err := timed(exec.Command("umount", d.dir)); err != nil {
		return err
	}
	return measure.Within(time.Minute, 10*time.Millisecond, func() error {
		if _, err := os.Stat(d.device + "/loop"); err == nil {
			return fmt.Errorf("%s is in use", d.device)
		}
		return nil
	})
}

// forget makes the disk cold.
func (d *coldDisk) forget() error { return errors.Join(d.unmount(), d.mount()) }

func (d *coldDisk) readByVersion(_ *account, e engine) (float64, error) {
	was, err := d.read()
	if err != nil {
		return 0, err
	}
	if _, err := timed(e.version()); err != nil {
		return 0, err
	}
	now, err := d.read()
	return now - was, err
}

// readByUp returns what is read until the pod's containers run. Afterwards nothing of the engine runs.
func (d *coldDisk) readByUp(user *account, e engine) (float64, error) {
	s := shapes[0]
	file, before := filepath.Join(d.dir, "pods", s.name+".yaml"), user.processes()
	was, err := d.read()
	if err != nil {
		return 0, err
	}
	if _, err = timed(e.up(s.name, file)); err == nil {
		err = user.atRest(before)
	}
	now, rerr := d.read()
	_, derr := timed(e.down(s.name, file))
	e.close()
	return now - was, errors.Join(err, rerr, derr, user.awaitExit(before))
}

// read returns how many MiB have been read from the device.
func (d *coldDisk) read() (float64, error) {
	b, err := os.ReadFile(d.device + "/stat")
	if err != nil {
		return 0, err
	}
	return mibRead(string(b))
}

// mibRead reads the statistics of a block device.
func mibRead(stat string) (float64, error) {
	const sectorsRead, sector = 2, 512
	fields := strings.Fields(stat)
	if len(fields) <= sectorsRead {
		return 0, fmt.Errorf("read the statistics of a device: %q", stat)
	}
	n, err := strconv.ParseFloat(fields[sectorsRead], 64)
	return n * sector / (1 << 20), err
}
