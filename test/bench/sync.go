package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

// Names of the measurements of up --watch --sync: from the moment before a file is written until the container has it. The
// peer has nothing like it.
const (
	saveTask = "a saved file in the container"
	treeTask = "1,000 saved files in the container"
)

const (
	saves     = 100 // saves of one file
	treeFiles = 1000
	treeSaves = 5
)

// measureSync saves files that podrun copies into a container.
func (b *bench) measureSync(f *figures) error {
	before, dir := b.user.processes(), filepath.Join(b.work, "sync")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		return err
	}
	up := b.ours.run("up", "--watch", "--sync", dir+":"+shapes[0].name+":/sync", b.manifest(shapes[0].name))
	var output bytes.Buffer
	up.Stdout, up.Stderr = &output, &output
	if err := up.Start(); err != nil {
		return err
	}
	err := b.saveFiles(f, dir, before)
	serr := up.Process.Signal(syscall.SIGINT) // ends it with a code that is not 0
	up.Wait()
	if err = errors.Join(err, serr, b.user.awaitExit(before)); err != nil {
		return fmt.Errorf("measure saved files: %w: %s", err, output.String())
	}
	return nil
}

func (b *bench) saveFiles(f *figures, dir string, before map[int]string) error {
	var inside string
	if err := measure.Within(time.Minute, 10*time.Millisecond, func() (err error) {
		if inside, err = b.user.rootOfPayload(before); err == nil {
			inside = filepath.Join(inside, "sync")
			_, err = os.Stat(filepath.Join(inside, "file"))
		}
		return err
	}); err != nil {
		return err
	}
	for n := range saves + treeSaves {
		task, name, files := saveTask, ".", 1
		if n >= saves {
			task, name, files = treeTask, fmt.Sprintf("tree%d", n), treeFiles
		}
		begin, text := time.Now(), fmt.Sprintf("save %03d", n)
		if err := saveAll(filepath.Join(dir, name), files, text); err != nil {
			return err
		}
		if err := measure.Within(time.Minute, time.Millisecond, func() error { return checkAll(filepath.Join(inside, name), files, text) }); err != nil {
			return err
		}
		f.add(task, time.Since(begin))
	}
	return nil
}

// rootOfPayload returns the root directory of a container that has started since before.
func (p *account) rootOfPayload(before map[int]string) (string, error) {
	for pid, line := range p.processes() {
		if _, old := before[pid]; !old && strings.TrimSpace(line) == "sleep "+payload {
			return fmt.Sprintf("/proc/%d/root", pid), nil
		}
	}
	return "", errors.New("the container does not run")
}

// saveAll writes files with a text into a directory.
func saveAll(dir string, files int, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for n := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", n)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkAll returns an error unless a directory has the files with the text.
func checkAll(dir string, files int, text string) error {
	for n := files - 1; n >= 0; n-- { // the last one is the last to come
		name := filepath.Join(dir, fmt.Sprintf("file%d", n))
		switch got, err := os.ReadFile(name); {
		case err != nil:
			return err
		case string(got) != text:
			return fmt.Errorf("%s has the text %q, not %q", name, got, text)
		}
	}
	return nil
}
