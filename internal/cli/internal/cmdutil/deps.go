package cmdutil

import (
	"context"
	"io"
	"os"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
)

// Deps are the parts of podrun that use the host. Tests replace them by fakes.
type Deps interface {
	CheckHost(host.Setup) []host.Finding                     // quick probes
	DiagnoseHost(context.Context, host.Setup) []host.Finding // all probes
	TryPod(context.Context, store.Dirs) error                // fails if no pod can be made here
	PodIDs() host.IDs                                        // user and group IDs for pods
	CheckHugePages(need map[string]int64) error              // need has the bytes of each page size
	SecurityModules() (host.AppArmor, host.SELinux)          // security modules of the kernel
	StartFirst(store.Dirs) *podinit.First                    // nil if it cannot be started
	OpenImages(store.Dirs) (ImageStore, error)
	NewLauncher(store.Dirs) (PodLauncher, error)
	// RunReplacer runs a recorded replacement of a pod in a process that survives this one, and waits for
	// it. The fake of tests calls inProcess instead.
	RunReplacer(dirs store.Dirs, p store.Pod, lock *store.FileLock, out io.Writer, inProcess func() error) error
	// StartPuller starts the puller of a pod that waits for its images. The puller takes over the pod's
	// lock.
	StartPuller(store.Dirs, store.Pod, PullerOptions, *os.File) error
}

// ImageStore provides images.
type ImageStore interface {
	// Ensure makes the image available locally, with a pull policy of package image.
	Ensure(ctx context.Context, ref, policy string, o image.PullOptions) (pod.Image, error)
	// GarbageCollect removes unused images if the disk is too full.
	GarbageCollect(uses func() (image.Uses, error)) (image.Pruned, error)
	// RemoveUnused removes unused images.
	RemoveUnused(uses func() (image.Uses, error)) (image.Pruned, error)
	// Lease prevents the removal of layers until the result is closed.
	Lease() (io.Closer, error)
}

// PodLauncher starts and removes pods. The caller holds the pod's lock.
type PodLauncher interface {
	// Start returns a warning for the user, or "".
	Start(p store.Pod, plan *pod.Plan, with StartOptions) (warning string, err error)
	// ResizeScope changes the values of the pod's scope, if it has one, from one Plan's to another's.
	ResizeScope(p store.Pod, from, to *pod.Plan) error
	Remove(p store.Pod) error
	// RemoveVolume removes the directory of a claim or of a PersistentVolume that no pod uses.
	RemoveVolume(dir string) error
}

// StartOptions are what a pod starts with.
type StartOptions struct {
	Lock   *os.File
	Ports  map[string]*os.File   // open host ports, by their names
	Notify *podinit.NotifyTarget // nil unless systemd runs the pod
	First  *podinit.First        // nil if no first process was started in advance
	Record func() error          // writes the pod's record during the start, if not nil
}

// PullerOptions are the options of the command that started the pod, for its puller.
type PullerOptions struct {
	TLSVerify     *bool  `json:"tlsVerify,omitempty"`
	AuthFile      string `json:"authFile,omitempty"`
	Pull          string `json:"pull,omitempty"` // the policy of --pull
	RequireLimits bool   `json:"requireLimits,omitempty"`
}
