package node

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// kubeletVersion is the Kubernetes release whose kubelet podrun stands for: the oldest control plane that it supports.
// A kubelet may be older than its API server, not newer.
const kubeletVersion = "v1.34.0"

// maxNodeImages is how many images a node lists (kubelet: nodeStatusMaxImages).
const maxNodeImages = 50

// factReader reads what the node reports of this host.
type factReader struct {
	env     *cmdutil.Env
	dirs    store.Dirs
	kinds   func() ([]cdi.Kind, error) // of devices
	problem string                     // the last error of kinds that was printed
}

// facts returns what the node reports of this host.
func (r *factReader) facts() (*node.Facts, error) {
	env, dirs := r.env, r.dirs
	f := &node.Facts{MilliCPU: int64(runtime.NumCPU()) * 1000}
	var err error
	if f.Memory, err = host.MemoryTotal(); err != nil {
		return nil, err
	}
	limits := delegation.FindCeiling() // of all pods, for example by the user's slice
	if limits.MilliCPU > 0 {
		f.MilliCPU = min(f.MilliCPU, limits.MilliCPU)
	}
	if limits.Memory > 0 {
		f.Memory = min(f.Memory, limits.Memory)
	}
	disk, err := host.StatFS(dirs.Data)
	if err != nil {
		return nil, err
	}
	f.Storage = int64(disk.Size)
	f.Devices = r.devices()
	if f.System, err = systemInfo(); err != nil {
		return nil, err
	}
	if f.Images, err = images(dirs); err != nil {
		return nil, err
	}
	if broken := host.FirstFailure(env.Deps.CheckHost(env.HostSetup())); broken != nil {
		f.Reason = broken.Error()
	}
	return f, nil
}

// devices returns how many devices of each kind pods can have. A kind whose name is no name of a resource is left out.
func (r *factReader) devices() map[corev1.ResourceName]int64 {
	kinds, err := r.kinds()
	if err == nil {
		r.problem = ""
	} else if r.problem != err.Error() {
		r.problem = err.Error()
		report.Print(r.env.ErrOut, err)
	}
	devices := map[corev1.ResourceName]int64{}
	for _, k := range kinds {
		if len(validation.IsQualifiedName(k.Name)) == 0 && !strings.Contains(k.Name, "kubernetes.io/") {
			devices[corev1.ResourceName(k.Name)] = int64(len(k.Units))
		}
	}
	return devices
}

// images returns the images of this host.
func images(dirs store.Dirs) (list []corev1.ContainerImage, err error) {
	s, err := cmdutil.OpenImages(dirs)
	if err != nil {
		return nil, err
	}
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range all[:min(len(all), maxNodeImages)] {
		if len(i.Names) > 0 {
			list = append(list, corev1.ContainerImage{Names: i.Names, SizeBytes: i.Size})
		}
	}
	return list, nil
}

// systemInfo returns the host's identity and software.
func systemInfo() (corev1.NodeSystemInfo, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return corev1.NodeSystemInfo{}, fmt.Errorf("read the kernel's version: %w", err)
	}
	machine, _ := os.ReadFile("/etc/machine-id") // "" where there is none
	release, _ := os.ReadFile("/etc/os-release")
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return corev1.NodeSystemInfo{
		MachineID: strings.TrimSpace(string(machine)), SystemUUID: strings.TrimSpace(string(machine)), BootID: store.BootID(),
		KernelVersion: unix.ByteSliceToString(u.Release[:]), OSImage: prettyName(string(release)),
		ContainerRuntimeVersion: "podrun://" + version, KubeletVersion: kubeletVersion + "+podrun",
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}, nil
}

// prettyName returns the name of the distribution in an os-release file (os-release(5)).
func prettyName(release string) string {
	for line := range strings.Lines(release) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if name, err := strconv.Unquote(value); err == nil {
			return name
		}
		return value
	}
	return "Linux"
}
