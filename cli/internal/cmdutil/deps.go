package cmdutil

import (
	"context"
	"io"
	"os"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// Deps are the parts of podrun that touch the host. Tests put fakes here.
type Deps interface {
	CheckHost(host.Setup) []host.Finding                     // quickly
	DiagnoseHost(context.Context, host.Setup) []host.Finding // thoroughly
	TryPod(context.Context, store.Dirs) error                // refuses where no pod could be made
	PodIDs() host.IDs                                        // of pods
	CheckHugePages(need map[string]int64) error              // why a pod cannot have so many bytes of each size
	SecurityModules() (host.AppArmor, host.SELinux)          // security modules of the kernel
	Prespawn(store.Dirs) *podinit.Prespawn                   // nil if it cannot be begun
	OpenImages(store.Dirs) (ImageStore, error)
	NewLauncher(store.Dirs) (PodLauncher, error)
	// ReplaceInBackground replaces a pod by its record in another process, which outlives this one; here
	// does the same in this one, for tests.
	ReplaceInBackground(dirs store.Dirs, p store.Pod, lock *store.FileLock, said io.Writer, here func() error) error
	// StartPuller starts a puller of a pod that waits for its images, which has the lock from now on.
	StartPuller(store.Dirs, store.Pod, PullerOptions, *os.File) error
}

// ImageStore brings images onto the machine.
type ImageStore interface {
	// Ensure has the image on the machine, by a pull policy of package image.
	Ensure(ctx context.Context, ref, policy string, o image.PullOptions) (pod.Image, error)
	// GarbageCollect frees unused images if the disk is too full.
	GarbageCollect(uses func() (image.Uses, error)) (image.Pruned, error)
	// Lease keeps every layer there until the result is closed.
	Lease() (io.Closer, error)
}

// PodLauncher starts and removes pods. The caller holds the pod's lock.
type PodLauncher interface {
	// Start returns what the user is to be warned of, if anything.
	Start(p store.Pod, plan *pod.Plan, with StartOptions) (warning string, err error)
	Remove(p store.Pod) error
	// RemoveClaim removes the directory of a claim that no pod uses.
	RemoveClaim(namespace, name string) error
}

// StartOptions is what a pod begins with.
type StartOptions struct {
	Lock       *os.File
	Ports      map[string]*os.File   // of the host, by their names
	Notify     *podinit.NotifyTarget // nil unless systemd runs the pod
	Prespawned *podinit.Prespawn     // nil: none was begun
	Record     func() error          // if not nil, it puts the pod on record meanwhile
}

// PullerOptions are what the command that asked for a pod says beside the manifest.
type PullerOptions struct {
	TLSVerify     *bool  `json:"tlsVerify,omitempty"`
	AuthFile      string `json:"authFile,omitempty"`
	Pull          string `json:"pull,omitempty"` // --pull's policy
	RequireLimits bool   `json:"requireLimits,omitempty"`
}
