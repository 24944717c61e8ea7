package delegation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MemoryDisabled returns why the kernel does not count memory, with the hint for this machine, as a
// *NotDelegated. It returns nil if the kernel counts memory, or if that cannot be determined. root
// is "" or a fake root directory.
//
// The firmware of a Raspberry Pi passes cgroup_disable=memory to the kernel. The arguments of
// cmdline.txt in the boot partition come after it and win.
func MemoryDisabled(root string) error { return hostView{root: root}.memoryDisabled() }

func (v hostView) memoryDisabled() error {
	if v.countsMemory() {
		return nil
	}
	return &NotDelegated{"the memory controller is switched off in this kernel", v.memoryHint()}
}

// countsMemory reads the root cgroup. That is invisible in a container, and does not exist with
// cgroup v1. Then it reads /proc/cgroups, unless that does not list the controller at all, as
// recent kernels without cgroup v1 do not.
func (v hostView) countsMemory() bool {
	if b, err := os.ReadFile(v.root + Mount + "/cgroup.controllers"); err == nil && v.isRoot(Mount) {
		return slices.Contains(strings.Fields(string(b)), "memory")
	}
	b, _ := os.ReadFile(v.root + "/proc/cgroups")
	for line := range strings.Lines(string(b)) {
		// subsys_name hierarchy num_cgroups enabled
		if f := strings.Fields(line); len(f) == 4 && f[0] == "memory" {
			return f[3] != "0"
		}
	}
	return true
}

func (v hostView) memoryHint() string {
	const enable, disable = "cgroup_enable=memory", "cgroup_disable=memory"
	booted, _ := os.ReadFile(v.root + "/proc/cmdline")
	file, wanted := v.cmdlineTxt()
	switch {
	case file != "" && strings.Contains(wanted, disable):
		return fmt.Sprintf("as root: sed -i 's/ *%s//' %s, and reboot", disable, file)
	case file != "" && strings.Contains(wanted, enable) && !strings.Contains(string(booted), enable):
		return fmt.Sprintf("reboot: %s has %s, but this kernel was started without it", file, enable)
	case file != "" && !strings.Contains(wanted, enable):
		return fmt.Sprintf("as root: sed -i '1 s/$/ %s/' %s, and reboot", enable, file)
	case file == "" && v.raspberry():
		return "add " + enable + " to the line of cmdline.txt in the boot partition, and reboot"
	case disables(string(booted)):
		return "remove " + disable + " from the kernel command line (GRUB: /etc/default/grub, then as root: update-grub), and reboot"
	}
	return "use a kernel with CONFIG_MEMCG"
}

// disables parses cgroup_disable=NAME,NAME.
func disables(cmdline string) bool {
	for _, word := range strings.Fields(cmdline) {
		names, ok := strings.CutPrefix(word, "cgroup_disable=")
		if ok && slices.Contains(strings.Split(names, ","), "memory") {
			return true
		}
	}
	return false
}

// cmdlineTxt returns a Raspberry Pi's file of kernel arguments and its content. Since Debian 12 it
// is below /boot/firmware; the file in /boot only points there.
func (v hostView) cmdlineTxt() (file, text string) {
	for _, file := range []string{"/boot/firmware/cmdline.txt", "/boot/cmdline.txt"} {
		if b, err := os.ReadFile(filepath.Join(v.root, file)); err == nil {
			return file, string(b)
		}
	}
	return "", ""
}

func (v hostView) raspberry() bool {
	b, _ := os.ReadFile(v.root + "/proc/device-tree/model")
	return strings.HasPrefix(string(b), "Raspberry Pi")
}
