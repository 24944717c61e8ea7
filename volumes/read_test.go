package volumes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

const passwd = "root:x:0:0::/root:/bin/sh\n"

func TestReadFileIn(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	write(t, filepath.Join(root, "etc", "passwd"), passwd)
	write(t, filepath.Join(root, "usr", "etc", "group"), "root:x:0:\n")
	write(t, filepath.Join(dir, "passwd"), "outside")
	write(t, filepath.Join(root, "etc", "exact"), strings.Repeat("x", 100))
	write(t, filepath.Join(root, "etc", "larger"), strings.Repeat("x", 101))
	write(t, filepath.Join(root, "etc", "empty"), "")
	big, err := os.Create(filepath.Join(root, "etc", "1GB"))
	must(t, err)
	must(t, big.Truncate(1<<30))
	must(t, big.Close())
	must(t, os.WriteFile(filepath.Join(root, "etc", "closed"), []byte("x"), 0))
	must(t, unix.Mkfifo(filepath.Join(root, "etc", "fifo"), 0o644))
	must(t, unix.Mkfifo(filepath.Join(dir, "hostfifo"), 0o644))
	for link, target := range map[string]string{
		"absolute": "/usr/etc/group", "relative": "../usr/etc/group", "chain": "absolute", "dots": "/../../../../etc/passwd",
		"climbs": "../../passwd", "outside": filepath.Join(dir, "passwd"), "hostfifo": filepath.Join(dir, "hostfifo"), "hostfifo2": "../../hostfifo",
		"zero": "/dev/zero", "self": "self", "magic": "/proc/self/root/etc/passwd", "magic2": "/proc/self/fd/0", "dir": ".", "dangling": "nothing",
	} {
		must(t, os.Symlink(target, filepath.Join(root, "etc", link)))
	}
	must(t, os.Symlink(dir, filepath.Join(root, "parent")))

	tests := []struct {
		path string
		want string
		err  error // nil with want ""- some error
	}{
		{path: "etc/passwd", want: passwd},
		{path: "/etc/passwd", want: passwd},
		{path: "/etc/closed", want: "x"},
		{path: "/etc/exact", want: strings.Repeat("x", 100)},
		{path: "/etc/absolute", want: "root:x:0:\n"},
		{path: "/etc/relative", want: "root:x:0:\n"},
		{path: "/etc/chain", want: "root:x:0:\n"},
		{path: "/etc/dots", want: passwd},
		{path: "/../../etc/passwd", want: passwd},
		{path: "/etc/missing", err: fs.ErrNotExist},
		{path: "/etc/dangling", err: fs.ErrNotExist},
		{path: "/nowhere/passwd", err: fs.ErrNotExist},
		{path: "/etc/climbs", err: fs.ErrNotExist},
		{path: "/etc/outside", err: fs.ErrNotExist},
		{path: "/parent/passwd", err: fs.ErrNotExist},
		{path: "/etc/hostfifo", err: fs.ErrNotExist},
		{path: "/etc/hostfifo2", err: fs.ErrNotExist},
		{path: "/etc/zero", err: fs.ErrNotExist},
		{path: "/etc/magic", err: fs.ErrNotExist},
		{path: "/etc/magic2", err: fs.ErrNotExist},
		{path: "/etc/self", err: unix.ELOOP},
		{path: "/etc/passwd/x", err: unix.ENOTDIR},
		{path: "/etc/larger", err: errTooLarge},
		{path: "/etc/1GB", err: errTooLarge},
		{path: "/etc/fifo", err: errNotRegular},
		{path: "/etc/dir", err: errNotRegular},
		{path: "/", err: errNotRegular},
	}
	for _, tt := range tests {
		b, err := ReadFileIn(root, tt.path, 100)
		if string(b) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, error %v, want %q, %v", tt.path, b, err, tt.want, tt.err)
		}
		if err != nil && !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s is not named by %q", tt.path, err)
		}
	}
	if b, err := ReadFileIn(root, "/etc/empty", 100); len(b) != 0 || err != nil {
		t.Errorf("empty file: %q, %v", b, err)
	}
}

// Devices and files of /proc and /sys, which report a wrong size, can be in a root file system
// through a mount: the test bind-mounts the host's /dev there.
func TestReadFileInOfDevices(t *testing.T) {
	testenv.NoLeaks(t)
	root := t.TempDir()
	for _, dir := range []string{"/dev", "/proc"} {
		mkdir(t, root+dir)
		must(t, unix.Mount(dir, root+dir, "", unix.MS_BIND|unix.MS_REC, ""))
		t.Cleanup(func() { must(t, Unmount(root+dir)) })
	}
	must(t, os.Symlink("dev/zero", filepath.Join(root, "zero")))
	for path, want := range map[string]error{
		"/zero": errNotRegular, "/dev/tty": errNotRegular, "/dev/zero": errNotRegular, "/proc/kmsg": nil, "/proc/self/mountinfo": nil, "/proc/kallsyms": errTooLarge,
	} {
		b, err := ReadFileIn(root, path, 64)
		if err == nil {
			t.Errorf("%s was read: %q", path, b)
		}
		if want != nil && !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", path, err, want)
		}
	}
}

// While a container swaps the file for a pipe, a link out and a large file, a reader gets the file
// or an error, without delay.
func TestReadFileInDuringARace(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	path := filepath.Join(root, "etc", "passwd")
	write(t, path, passwd)
	write(t, filepath.Join(dir, "canary"), "outside")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		next := filepath.Join(root, "next")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			switch i % 4 {
			case 0:
				unix.Mkfifo(next, 0o644)
			case 1:
				os.Symlink(filepath.Join(dir, "canary"), next)
			case 2:
				os.WriteFile(next, make([]byte, 4096), 0o644)
			case 3:
				os.WriteFile(next, []byte(passwd), 0o644)
			}
			os.Rename(next, path)
		}
	}()
	read := 0
	enough, limit := time.Now().Add(time.Second), time.Now().Add(time.Minute)
	for read < 200 && (time.Now().Before(enough) || read == 0 && time.Now().Before(limit)) {
		runtime.Gosched()
		b, err := ReadFileIn(root, "etc/passwd", 1024)
		if err == nil {
			read++
			if string(b) != passwd {
				t.Fatalf("read %q", b)
			}
		}
	}
	close(stop)
	<-stopped
	if read == 0 {
		t.Error("never read the file")
	}
}
