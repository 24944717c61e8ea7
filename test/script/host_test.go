package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// hostKey is the key of a script's host in its environment.
type hostKey struct{}

// host is the part of the machine that a script uses.
type host struct {
	dir    string
	env    []string
	locked *os.File // by the command lock
}

// newHost makes the directories of a host and imports the image.
func newHost(dir, bin, rootfs string) (*host, error) {
	h, err := newEmptyHost(dir, bin)
	if err != nil {
		return nil, err
	}
	h.env = append(h.env, rootfsTar+"="+rootfs)
	return h, h.podrun("image", "import", rootfs, imageName).Run()
}

// newEmptyHost makes the directories of a host.
func newEmptyHost(dir, bin string) (*host, error) {
	h := &host{dir: dir, env: []string{
		"PATH=" + bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PODRUN=" + filepath.Join(bin, "podrun"),
		"TERM=xterm",
		"HOME=" + filepath.Join(dir, "home"),
		"XDG_DATA_HOME=" + filepath.Join(dir, "data"),
		"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
	}}
	for _, name := range []string{"home", "data", "run"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// command returns a command in the host's environment.
func (h *host) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = slices.Clone(h.env)
	return cmd
}

func (h *host) podrun(args ...string) *exec.Cmd {
	cmd := h.command("podrun", args...)
	for _, kv := range h.env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			dir, _, _ := strings.Cut(path, ":")
			cmd.Path, cmd.Err = filepath.Join(dir, "podrun"), nil
		}
	}
	return cmd
}

// clear removes all that a script has left, so that its directory can be removed: an ordinary rm
// cannot remove files of subordinate ids.
func (h *host) clear() {
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "job"} { // first, because they would make their pods again
		all, _ := h.podrun("get", kind, "-A", "--no-headers").Output()
		for l := range strings.Lines(string(all)) {
			if f := strings.Fields(l); len(f) > 1 {
				h.podrun("delete", kind, f[1], "-n", f[0]).Run()
			}
		}
	}
	for _, dir := range []string{"data/podrun/pods", "run/podrun/pods"} {
		pods, _ := filepath.Glob(filepath.Join(h.dir, dir, "*", "*"))
		for _, p := range pods {
			h.podrun("down", "--force", filepath.Base(p), "-n", filepath.Base(filepath.Dir(p))).Run()
		}
	}
	names, _ := h.podrun("image", "ls").Output()
	for l := range strings.Lines(string(names)) {
		if f := strings.Fields(l); len(f) > 1 && f[0] != "NAME" {
			h.podrun("image", "rm", f[0]).Run()
		}
	}
}

// left lists remains of pods: processes, files, mounts.
func (h *host) left() []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		// Processes of pods have the pod's directories in their arguments.
		if cmdline, err := os.ReadFile(l); err == nil && strings.Contains(string(cmdline), h.dir+"/") && strings.Contains(string(cmdline), "\x00_") {
			found = append(found, fmt.Sprintf("process %s: %q", filepath.Base(filepath.Dir(l)), cmdline))
		}
	}
	for _, dir := range []string{"data/podrun/pods", "run/podrun/pods"} {
		filepath.WalkDir(filepath.Join(h.dir, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, "file "+path)
			}
			return nil
		})
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for l := range strings.Lines(string(mounts)) {
		if strings.Contains(l, h.dir+"/") {
			found = append(found, "mount "+l)
		}
	}
	return found
}
