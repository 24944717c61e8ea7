package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/protocol"
)

// Pod gives access to the files of one pod.
type Pod struct {
	Namespace, Name string

	data, runtime string
	dirs          Dirs
}

// Pod returns the Pod of a name. Both names must be validated DNS names, so that they are safe as
// path elements. A name that is no path element is a bug, and panics.
func (d Dirs) Pod(namespace, name string) Pod {
	for _, s := range []string{namespace, name} {
		if s == "" || s == "." || s == ".." || strings.ContainsRune(s, '/') {
			panic(fmt.Sprintf("store: pod name %q/%q was not validated", namespace, name))
		}
	}
	p := Pod{
		Namespace: namespace, Name: name, dirs: d,
		data:    d.podData(namespace, name),
		runtime: filepath.Join(d.Runtime, protocol.FilePods, namespace, name),
	}
	// A pod stays where it was started: XDG_RUNTIME_DIR may have changed, after a login that
	// followed su or cron. A directory that a reboot has removed does not count.
	if target, err := os.Readlink(filepath.Join(p.data, protocol.FileRuntime)); err == nil && isDir(target) && !d.ofOtherBoot(target) {
		p.runtime = target
	}
	return p
}

func (d Dirs) podData(namespace, name string) string {
	return filepath.Join(d.Data, protocol.FilePods, namespace, name)
}

// DataDir returns the directory for large files: volumes, writable layers, logs.
func (p Pod) DataDir() string { return p.data }

// RuntimeDir returns the directory on tmpfs for files that need not outlive a reboot.
func (p Pod) RuntimeDir() string { return p.runtime }

// VolumesDir returns the directory of the pod's emptyDir volumes on disk.
func (p Pod) VolumesDir() string { return filepath.Join(p.data, "volumes") }

// RootfsDir returns the directory of the writable layers of the pod's containers.
func (p Pod) RootfsDir() string { return filepath.Join(p.data, "rootfs") }

// MountPointsDir returns the directory of the layers of mount points, which the user's pods share.
func (p Pod) MountPointsDir() string { return p.dirs.MountPointsDir() }

// LibcontainerDir returns libcontainer's state root of this pod.
func (p Pod) LibcontainerDir() string { return filepath.Join(p.runtime, "libcontainer") }

// LogFile returns the log of one instance of a container, in CRI format.
func (p Pod) LogFile(container string, attempt int) string {
	return filepath.Join(p.LogDir(container), strconv.Itoa(attempt)+".log")
}

// LogDir returns the directory of the logs of all instances of a container.
func (p Pod) LogDir(container string) string { return filepath.Join(p.data, logsLink, container) }

// SupervisorLog returns the file for the supervisor's own messages.
func (p Pod) SupervisorLog() string { return filepath.Join(p.runtime, "supervisor.log") }

// OpenSupervisorLog opens that file for a process that appends to it.
func (p Pod) OpenSupervisorLog() (*os.File, error) {
	f, err := os.OpenFile(p.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open supervisor log: %w", err)
	}
	return f, nil
}

// Exists reports whether the pod has been created and not been removed.
func (p Pod) Exists() bool {
	_, err := os.Stat(filepath.Join(p.data, planFile))
	return err == nil
}

const (
	planFile     = "plan.json"
	manifestFile = "manifest.json"
	statusFile   = "status.json" // in the runtime directory while the pod lives, in the data directory after
)

// Create creates the pod's directories with its Plan and its manifest (a v1.Pod as JSON, opaque
// here). The pod must be locked and not alive. It writes the plan last, durably: a pod without plan
// does not exist. If the pod was lost and is resumed, all other files stay.
func (p Pod) Create(plan *pod.Plan, manifest []byte) error {
	for _, dir := range []string{p.data, p.runtime, p.VolumesDir(), p.RootfsDir(), p.LibcontainerDir()} {
		if err := makeDirs(dir); err != nil {
			return fmt.Errorf("create pod directory: %w", err)
		}
	}
	// The recorded end of a pod that is resumed is no longer true.
	if err := removeExisting(filepath.Join(p.data, statusFile)); err != nil {
		return fmt.Errorf("create pod directory: %w", err)
	}
	if err := errors.Join(p.linkRuntime(), p.createLogs(plan)); err != nil {
		return err
	}
	// The manifest needs no sync of its own: the sync of the directory for the plan follows.
	if err := replace(filepath.Join(p.data, manifestFile), manifest, 0o600, true); err != nil {
		return fmt.Errorf("save manifest: %w", err)
	}
	return p.writePlan(plan)
}

// linkRuntime makes the link to the runtime directory, if there is not the same one. Several processes may do so at the
// same time, for a pod that has lost that directory.
func (p Pod) linkRuntime() error {
	link := filepath.Join(p.data, protocol.FileRuntime)
	var err error
	for range 100 {
		if target, rerr := os.Readlink(link); rerr == nil && target == p.runtime {
			return nil
		}
		if err = removeExisting(link); err == nil {
			err = os.Symlink(p.runtime, link)
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("create pod directory: %w", err)
	}
	return nil
}

func (p Pod) writePlan(plan *pod.Plan) error {
	if err := writeJSON(WriteFile, filepath.Join(p.data, planFile), plan); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return nil
}

// ReplacePlan records another Plan and manifest of a living pod, durably. Its supervisor calls it. It
// writes the manifest last: with the old manifest, a command that compares sees that something is
// still to be done.
func (p Pod) ReplacePlan(plan *pod.Plan, manifest []byte) error {
	if err := p.writePlan(plan); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(p.data, manifestFile), manifest); err != nil {
		return fmt.Errorf("save manifest: %w", err)
	}
	return nil
}

// Plan reads the pod's Plan.
func (p Pod) Plan() (*pod.Plan, error) {
	var plan pod.Plan
	if err := readJSON(filepath.Join(p.data, planFile), &plan); err != nil {
		return nil, fmt.Errorf("read plan of pod %s: %w", p.Name, err)
	}
	if plan.Version > pod.PlanVersion {
		return nil, fmt.Errorf("read plan of pod %s: version %d was written by a newer podrun", p.Name, plan.Version)
	}
	return &plan, nil
}

// Manifest reads the v1.Pod that the pod was made from, as JSON.
func (p Pod) Manifest() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(p.data, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	return b, nil
}

// WriteStatus publishes the status: to tmpfs while the pod lives, and durably to disk once its
// phase is terminal.
func (p Pod) WriteStatus(st *pod.Status) error { return p.writeStatus(st, st.Phase.Terminal()) }

// WriteRemoving is WriteStatus for a pod that is about to be removed: to tmpfs only.
func (p Pod) WriteRemoving(st *pod.Status) error { return p.writeStatus(st, false) }

func (p Pod) writeStatus(st *pod.Status, last bool) error {
	b, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	var errs []error
	if err := WriteVolatile(filepath.Join(p.runtime, statusFile), b); err != nil {
		errs = append(errs, fmt.Errorf("save status: %w", err))
	}
	if last {
		if err := WriteFile(filepath.Join(p.data, statusFile), b); err != nil {
			errs = append(errs, fmt.Errorf("save final status: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Status reads the last published status, possibly of a supervisor that is gone: see Alive. The
// error is fs.ErrNotExist if none was published.
func (p Pod) Status() (*pod.Status, error) {
	var st pod.Status
	err := readJSON(filepath.Join(p.runtime, statusFile), &st)
	if errors.Is(err, fs.ErrNotExist) {
		err = readJSON(filepath.Join(p.data, statusFile), &st)
	}
	if err != nil {
		return nil, fmt.Errorf("read status of pod %s: %w", p.Name, err)
	}
	return &st, nil
}

// Remove deletes both directories. The pod must be locked. Files that belong to the user's
// subordinate ids must have been removed. The lock goes last: then the pod's name is free.
func (p Pod) Remove() error {
	err := errors.Join(p.removeData(protocol.FileLock), p.removeRuntime())
	if err == nil {
		err = removeExisting(p.lockFile())
	}
	if err != nil {
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	}
	os.Remove(p.data) // unless it has the lock of the next holder
	for _, dir := range []string{p.data, p.runtime} {
		os.Remove(filepath.Dir(dir)) // the namespace's directory, if this was its last pod
	}
	return nil
}

// removeRuntime deletes the runtime directory.
func (p Pod) removeRuntime() error {
	if err := emptyDir(p.runtime); err != nil {
		return err
	}
	return removeExisting(p.runtime)
}

func removeExisting(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// emptyDir deletes everything in a directory except the files whose names are in but.
func emptyDir(dir string, but ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(but, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// InitPID returns the pid of the first process of a container's instance in the pod's own PID
// namespace, as libcontainer recorded it.
func (p Pod) InitPID(container string, attempt int) (int, error) {
	var state struct {
		PID int `json:"init_process_pid"`
	}
	if err := readJSON(filepath.Join(p.LibcontainerDir(), container+"-"+strconv.Itoa(attempt), "state.json"), &state); err != nil {
		return 0, fmt.Errorf("find container %s of pod %s: %w", container, p.Name, err)
	}
	return state.PID, nil
}

// InitProcFile returns a file in /proc of that process, such as status. It leads through the root directory of the
// pod init, whose /proc has the pids of the pod's own PID namespace.
func (p Pod) InitProcFile(container string, attempt int, name string) (string, error) {
	inner, err := p.InitPID(container, attempt)
	if err != nil {
		return "", err
	}
	podInit, _, ok := p.PodInit()
	if !ok {
		return "", fmt.Errorf("find container %s of pod %s: the pod has no processes", container, p.Name)
	}
	return filepath.Join("/proc", strconv.Itoa(podInit), "root/proc", strconv.Itoa(inner), name), nil
}

// FiltersDir returns the directory of compiled system call filters, which all pods of a user share
// until the machine shuts down.
func (p Pod) FiltersDir() string { return filepath.Join(p.dirs.Runtime, "filters") }
