// Package objects stores and removes ConfigMaps, Secrets, Services, claims, PersistentVolumes and
// workloads, binds claims, and notifies the pods that refer to them.
package objects

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/hostport"
)

// Apply stores the objects of manifests. It checks all of them before it changes one. It reports the
// result of each, as kubectl apply does, and returns the objects that it has stored, and the claims that it has
// bound, stored or not.
func Apply(env *cmdutil.Env, dirs store.Dirs, objects []manifest.Object, out io.Writer) (stored, bound []*pod.Object, err error) {
	if len(objects) == 0 {
		return nil, nil, nil
	}
	lock, err := dirs.LockObjects()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot store objects: %w", err)
	}
	defer lock.Close()
	var changes []Change
	var errs []error
	for i := range objects {
		k, err := Compare(env, dirs, &objects[i])
		changes, errs = append(changes, k), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if err := assignAddresses(dirs, changes, nil); err != nil {
		return nil, nil, err
	}
	var secrets []*pod.Object
	for _, k := range changes {
		secrets = append(secrets, k.Object)
	}
	WarnOfDisk(env, dirs, secrets)
	for _, k := range changes {
		if k.Verb != "unchanged" {
			if err := dirs.PutObject(k.Object); err != nil {
				return stored, nil, fmt.Errorf("cannot store %s: %w", kindnames.Display(k.Object), err)
			}
			stored = append(stored, k.Object)
		}
		fmt.Fprintf(out, "%s %s\n", kindnames.Display(k.Object), k.Verb)
	}
	bound, err = bindClaims(env, dirs, changes)
	return stored, bound, err
}

// CheckServices returns an error if the Services among objects could not have the addresses and node ports that they name,
// once those that leave are removed. It changes nothing.
func CheckServices(env *cmdutil.Env, dirs store.Dirs, objects []manifest.Object, leaves func(*pod.Object) bool) error {
	var changes []Change
	for _, o := range objects {
		if o.Stored.Service == nil {
			continue
		}
		stored, service := *o.Stored, *o.Stored.Service
		service.Ports = slices.Clone(service.Ports)
		o.Stored, stored.Service = &stored, &service
		k, err := Compare(env, dirs, &o)
		if err != nil {
			return err
		}
		changes = append(changes, k)
	}
	if len(changes) == 0 {
		return nil
	}
	return assignAddresses(dirs, changes, leaves)
}

// assignAddresses assigns addresses to new Services that need them. What a Service that is changed had, another may have
// now, and what one that leaves has.
func assignAddresses(dirs store.Dirs, changes []Change, leaves func(*pod.Object) bool) error {
	all, err := dirs.Objects(pod.KindService, "")
	if err != nil {
		return fmt.Errorf("cannot allocate addresses of Services: %w", err)
	}
	networks := dirs.Networks(all)
	all = slices.DeleteFunc(all, func(o *pod.Object) bool {
		return leaves != nil && leaves(o) || slices.ContainsFunc(changes, func(k Change) bool {
			return k.Object.Kind == o.Kind && k.Object.Namespace == o.Namespace && k.Object.Name == o.Name
		})
	})
	for _, k := range changes {
		if k.Object.Kind == pod.KindService {
			all = append(all, k.Object)
		}
	}
	var errs []error
	for _, k := range changes {
		if k.Object.Kind != pod.KindService || k.Verb == "unchanged" {
			continue
		}
		if k.Verb == "configured" {
			networks.Renumber(k.Object.Service)
		}
		if err := networks.AssignClusterIPs(k.Object, all); err != nil {
			errs = append(errs, report.New(report.Usage, "omit spec.clusterIP: podrun chooses an address", "cannot store %s: %w", kindnames.Display(k.Object), err))
		}
		if err := assignNodePorts(k, all); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Change is the change of one object.
type Change struct {
	Object *pod.Object
	Verb   string // created, configured, unchanged
}

// Compare compares an object with the stored one of its name.
func Compare(env *cmdutil.Env, dirs store.Dirs, o *manifest.Object) (Change, error) {
	next := o.Stored
	if next.PersistentVolume != nil {
		next.PersistentVolume.OtherNode = !resource.IsOnThisNode(o)
	}
	old, err := dirs.Object(next.Kind, next.Namespace, next.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && old.Deleting { // one that is being removed is created again after that
		next.UID, next.CreatedAt, next.Revision = NewUID(), time.Now().UTC(), 1
		return Change{next, "created"}, nil
	}
	if err != nil {
		return Change{}, fmt.Errorf("cannot store %s: %w", kindnames.Display(next), err)
	}
	bound, err := withVolumeName(dirs, old)
	if err != nil {
		return Change{}, fmt.Errorf("cannot store %s: %w", kindnames.Display(next), err)
	}
	if err := manifest.ValidateObjectUpdate(o, bound); err != nil {
		return Change{}, report.New(report.Failure, fmt.Sprintf("podrun delete %s %s removes it, so that it can be created again", kindnames.Of(next.Kind), next.Name), "cannot change %s\n%w", kindnames.Display(next), err)
	}
	conversion.PreserveFrom(old, next)
	if conversion.Equal(old, next) {
		return Change{old, "unchanged"}, nil
	}
	next.Revision++
	return Change{next, "configured"}, nil
}

// assignNodePorts assigns node ports to a Service. A port that the Service names must be free on the host,
// or shared by the user's own pods. Conflicts with other Services are found by AssignNodePorts.
func assignNodePorts(k Change, all []*pod.Object) error {
	if k.Object.Service == nil || !k.Object.Service.Type.OpensPorts() {
		return nil
	}
	for _, p := range k.Object.Service.Ports {
		if p.NodePort == 0 {
			continue
		}
		if err := checkPortFree(p.Protocol, int(p.NodePort)); err != nil {
			return report.New(report.Failure, "ss -lnp shows which process uses it; omit nodePort: podrun chooses a free one", "cannot store %s: %w", kindnames.Display(k.Object), err)
		}
	}
	if err := k.Object.AssignNodePorts(all, checkPortFree); err != nil {
		return report.New(report.Usage, "omit nodePort: podrun chooses a free one", "cannot store %s: %w", kindnames.Display(k.Object), err)
	}
	return nil
}

// checkPortFree returns an error if a program other than the user's own pods, which share it, uses a
// port.
func checkPortFree(protocol string, port int) error {
	file, err := hostport.Bind(hostport.Port{Protocol: strings.ToLower(protocol), Number: port, Shared: true})
	if err != nil {
		return err
	}
	return file.Close()
}

// NewUID returns a random UUID (RFC 9562, version 4).
func NewUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// WarnOfDisk warns if Secrets would be stored on a disk instead of in memory.
func WarnOfDisk(env *cmdutil.Env, dirs store.Dirs, objects []*pod.Object) {
	if slices.ContainsFunc(objects, func(o *pod.Object) bool { return o.Kind == pod.KindSecret }) && onDisk(dirs.Runtime) {
		fmt.Fprintf(env.ErrOut, "podrun: warning: secrets are written to a disk: %s is not in memory; set XDG_RUNTIME_DIR to a directory on a tmpfs\n", dirs.Runtime)
	}
}

// onDisk reports whether a directory is on a disk.
func onDisk(dir string) bool {
	fs, err := host.StatFS(dir)
	return err == nil && !fs.Memory
}
