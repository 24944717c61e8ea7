package testenv

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BusyboxRootfs fills dir with a root file system of Debian's static busybox, and creates dir if it
// is missing: /bin with every applet, /etc with root and user (1000), empty mount points.
func BusyboxRootfs(dir string) error {
	busybox, err := staticBusybox()
	if err != nil {
		return err
	}
	modes := map[string]os.FileMode{
		"": 0o755, "bin": 0o755, "etc": 0o755, "dev": 0o755, "proc": 0o755, "sys": 0o755, "root": 0o755,
		"home": 0o755, "home/user": 0o777, "tmp": 0o777 | os.ModeSticky,
	}
	for sub, mode := range modes {
		path := filepath.Join(dir, sub)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	files := []struct {
		name    string
		content []byte
		mode    os.FileMode
	}{
		{"bin/busybox", program, 0o755},
		{"etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"), 0o644},
		{"etc/group", []byte("root:x:0:\nuser:x:1000:\nextra:x:2000:user\n"), 0o644},
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := errors.Join(os.WriteFile(path, f.content, f.mode), os.Chmod(path, f.mode)); err != nil {
			return err
		}
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("list busybox's applets: %w", err)
	}
	for _, applet := range strings.Fields(string(applets)) {
		if applet == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", applet)); err != nil {
			return err
		}
	}
	return nil
}

func staticBusybox() (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", fmt.Errorf("find busybox (apt-get install busybox-static): %w", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s is not static (apt-get install busybox-static)", path)
		}
	}
	return path, nil
}
