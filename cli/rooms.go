package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/nsprobe"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// rooms are the parts of podrun that touch the host. Tests put fakes here.
type rooms interface {
	check(host.Setup) []host.Finding                    // quickly
	examine(context.Context, host.Setup) []host.Finding // thoroughly
	try(context.Context, store.Dirs) error              // refuses where no pod could be made
	ids() host.IDs                                      // of pods
	hugePages(need map[string]int64) error              // why a pod cannot have so many bytes of each size
	modules() (host.AppArmor, host.SELinux)             // security modules of the kernel
	ahead(store.Dirs) *podinit.Prespawn                 // nil if it cannot be begun
	images(store.Dirs) (images, error)
	pods(store.Dirs) (pods, error)
	// beside replaces a pod by its record in another process, which outlives this one; here
	// does the same in this one, for tests.
	beside(dirs store.Dirs, p store.Pod, lock *store.FileLock, said io.Writer, here func() error) error
	// pull starts a puller of a pod that waits for its images, which has the lock from now on.
	pull(store.Dirs, store.Pod, pullWishes, *os.File) error
}

// images brings images onto the machine.
type images interface {
	// Ensure has the image on the machine, by a pull policy of package image.
	Ensure(ctx context.Context, ref, policy string, o image.PullOptions) (pod.Image, error)
	// GarbageCollect frees unused images if the disk is too full.
	GarbageCollect(uses func() (image.Uses, error)) (image.Pruned, error)
	// Lease keeps every layer there until the result is closed.
	Lease() (io.Closer, error)
}

// pods starts and removes pods. The caller holds the pod's lock.
type pods interface {
	// start returns what the user is to be warned of, if anything.
	start(p store.Pod, plan *pod.Plan, with beginning) (warning string, err error)
	remove(p store.Pod) error
	// removeClaim removes the directory of a claim that no pod uses.
	removeClaim(namespace, name string) error
}

// beginning is what a pod begins with.
type beginning struct {
	lock   *os.File
	ports  map[string]*os.File   // of the host, by their names
	at     *podinit.NotifyTarget // nil unless systemd runs the pod
	ahead  *podinit.Prespawn     // nil: none was begun
	record func() error          // if not nil, it puts the pod on record meanwhile
}

// house is the real one.
type house struct{}

func (house) ids() host.IDs { return host.FindIDs() }

func (house) hugePages(need map[string]int64) error { return host.HugePages(need) }

func (house) modules() (host.AppArmor, host.SELinux) {
	return host.FindAppArmor(), host.FindSELinux()
}

func (house) images(dirs store.Dirs) (images, error) { return openImages(dirs) }

func (house) pods(dirs store.Dirs) (pods, error) {
	programs, err := programs.Programs(dirs)
	return &keeper{dirs, programs}, err
}

func (house) pull(dirs store.Dirs, p store.Pod, wishes pullWishes, lock *os.File) error {
	text, err := json.Marshal(wishes)
	if err != nil {
		return fmt.Errorf("encode how to pull: %w", err)
	}
	return reexec.StartPuller(dirs, p, string(text), lock)
}

// keeper runs the stages of pods in the supervisor's program.
type keeper struct {
	dirs     store.Dirs
	programs podinit.Programs
}

func (k *keeper) start(p store.Pod, plan *pod.Plan, with beginning) (string, error) {
	s := podinit.Options{Record: with.record, Programs: k.programs, Dirs: k.dirs, Pod: p, Hostname: plan.NodeName(), Lock: with.lock, Ports: with.ports, Notify: with.at, Prespawn: with.ahead, OwnUserNS: plan.Apart && os.Geteuid() != 0}
	s.HostPID = plan.HostPID
	if u := plan.Users; u != nil {
		s.Users = &host.Range{First: uint64(u.First), Count: uint64(u.Count)}
	}
	warning := settle(&s, plan)
	err := podinit.Start(s)
	return warning(), err
}

func (k *keeper) remove(p store.Pod) error {
	defer runtime.KeepAlive(k.programs.InUse)
	return podinit.RemovePod(k.programs.Supervisor, k.dirs, p)
}

func (k *keeper) removeClaim(namespace, name string) error {
	defer runtime.KeepAlive(k.programs.InUse)
	return podinit.RemoveClaim(k.programs.Supervisor, k.dirs, namespace, name)
}

// Stages are the hidden stages of the rooms that only the command line links.
func Stages() map[string]func(args []string) int {
	stages := image.Stages()
	maps.Copy(stages, nsprobe.Stages())
	stages[reexec.Controller] = controllerStage
	stages[reexec.Replacer] = replacerStage
	stages[reexec.Puller] = pullerStage
	return stages
}
