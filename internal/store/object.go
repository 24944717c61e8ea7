package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// Objects are one small file each, named as the object. Secrets are only in the runtime directory,
// which is in memory: a reboot deletes them.

// objectDirs names the directory of each kind.
var objectDirs = map[pod.ObjectKind]string{
	pod.KindConfigMap: "configmaps",
	pod.KindSecret:    "secrets",
	pod.KindClaim:     "claims",
	pod.KindService:   "services",
	pod.KindNamespace: "namespaces",
	pod.KindVolume:    "persistentvolumes",

	pod.KindEndpoints:      "endpoints",
	pod.KindEndpointSlice:  "endpointslices",
	pod.KindServiceAccount: "serviceaccounts",
	pod.KindNetworkPolicy:  "networkpolicies",

	pod.KindDeployment:  "deployments",
	pod.KindReplicaSet:  "replicasets",
	pod.KindReplication: "replicationcontrollers",
	pod.KindStatefulSet: "statefulsets",
	pod.KindDaemonSet:   "daemonsets",
	pod.KindJob:         "jobs",
	pod.KindCronJob:     "cronjobs",
}

// ErrBadName means that a requested name cannot be the name of an object.
var ErrBadName = errors.New("no name")

// maxName is the length of a DNS subdomain, and fits in a file name.
const maxName = 253

// PutObject creates or replaces an object, durably unless it is a Secret.
func (d Dirs) PutObject(o *pod.Object) error {
	path, err := d.objectFile(o.Kind, o.Namespace, o.Name)
	if err != nil {
		return fmt.Errorf("save object: %w", err)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	if err := d.writeObject(o.Kind, path, b); err != nil {
		return fmt.Errorf("save %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return d.bumpVersionForService(o.Kind)
}

func (d Dirs) writeObject(kind pod.ObjectKind, path string, b []byte) error {
	if kind == pod.KindSecret {
		if err := d.linkSecrets(); err != nil {
			return err
		}
	}
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	if kind == pod.KindSecret {
		return WriteVolatile(path, b)
	}
	if err := WriteFile(path, b); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(filepath.Dir(path))) // of the namespace's directory
}

// Object reads one object; fs.ErrNotExist if it is missing.
func (d Dirs) Object(kind pod.ObjectKind, namespace, name string) (*pod.Object, error) {
	path, err := d.objectFile(kind, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	var o pod.Object
	err = readJSON(path, &o)
	if err == nil && !matches(&o, kind, namespace, name) {
		err = errors.New("it is another object")
	}
	switch {
	case errors.As(err, new(*fs.PathError)): // missing or unreadable, which proves no damage
		return nil, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
	case err != nil:
		hint := fmt.Sprintf("it is damaged: podrun delete %s %s removes it", strings.ToLower(string(kind)), name)
		if namespace != "" {
			hint += " (-n " + namespace + ")"
		}
		return nil, report.New(report.Failure, hint, "read %s %s/%s: %w", kind, namespace, name, err)
	}
	return &o, nil
}

// matches reports whether an object has the requested identity and the fields of its kind.
func matches(o *pod.Object, kind pod.ObjectKind, namespace, name string) bool {
	lacks := map[pod.ObjectKind]bool{
		pod.KindConfigMap: o.ConfigMap == nil, pod.KindSecret: o.Secret == nil,
		pod.KindClaim: o.Claim == nil, pod.KindService: o.Service == nil,
		pod.KindVolume:    o.PersistentVolume == nil,
		pod.KindEndpoints: o.Endpoints == nil, pod.KindEndpointSlice: o.Endpoints == nil,
		pod.KindServiceAccount: o.ServiceAccount == nil,
		pod.KindNetworkPolicy:  o.NetworkPolicy == nil,
	}
	return o.Kind == kind && o.Namespace == namespace && o.Name == name && !lacks[kind]
}

// CorruptError is the error of a list that lacks the damaged objects which the error names.
type CorruptError struct{ error }

func (d CorruptError) Unwrap() error { return d.error }

// Objects reads all objects of a kind in a namespace, or in all namespaces for "", by namespace and
// name. It leaves out objects that are damaged or may not be read, and names them in a
// *CorruptError.
func (d Dirs) Objects(kind pod.ObjectKind, namespace string) ([]*pod.Object, error) {
	root, err := d.kindDir(kind)
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	spaces := []string{namespace}
	if namespace == "" && !kind.ClusterScoped() {
		if spaces, err = names(root); err != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
	}
	var list []*pod.Object
	var damaged []error
	for _, space := range spaces {
		if space != "" && !isSafeName(space) {
			return nil, fmt.Errorf("list objects of kind %s: %q is not a namespace", kind, space)
		}
		found, err := names(filepath.Join(root, space))
		if err != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
		for _, name := range found {
			o, err := d.Object(kind, space, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted in between
			}
			if IsExhausted(err) {
				return nil, err
			}
			if err != nil {
				damaged = append(damaged, err)
				continue
			}
			list = append(list, o)
		}
	}
	if len(damaged) > 0 {
		return list, CorruptError{errors.Join(damaged...)}
	}
	return list, nil
}

// Object reads an object of the pod's namespace.
func (p Pod) Object(kind pod.ObjectKind, name string) (*pod.Object, error) {
	return p.dirs.Object(kind, p.Namespace, name)
}

// Services returns the Services of the pod's namespace.
func (p Pod) Services() ([]*pod.Object, error) {
	return p.dirs.Objects(pod.KindService, p.Namespace)
}

// OfCluster is Dirs.OfCluster for the objects to which the pod refers.
func (p Pod) OfCluster() Pod {
	p.dirs = p.dirs.OfCluster()
	return p
}

// APIService returns the Service of the API server of a cluster; fs.ErrNotExist if there is none.
func (p Pod) APIService() (*pod.Object, error) {
	return p.dirs.Object(pod.KindService, "default", "kubernetes")
}

// EnvFile returns the file with the environment of one instance of a container, for commands that
// run in it later. It may hold values of Secrets.
func (p Pod) EnvFile(container string, attempt int) string {
	return filepath.Join(p.runtime, fmt.Sprintf("env-%s-%d", container, attempt))
}

// DeleteObject removes an object; fs.ErrNotExist if it is missing.
func (d Dirs) DeleteObject(kind pod.ObjectKind, namespace, name string) error {
	path, err := d.objectFile(kind, namespace, name)
	if err != nil {
		return fmt.Errorf("delete object: %w", err)
	}
	dir := filepath.Dir(path)
	if err = os.Remove(path); err == nil && kind != pod.KindSecret {
		err = SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", kind, namespace, name, err)
	}
	if !kind.ClusterScoped() {
		os.Remove(dir) // the namespace's directory, if this was its last object
	}
	return d.bumpVersionForService(kind)
}

// LockObjects prevents others from changing objects until the lock is closed: objects that the
// caller has read stay as they are. The lock is on disk, as the objects are: processes of other
// login sessions find it, too.
func (d Dirs) LockObjects() (*FileLock, error) {
	return LockExclusive(filepath.Join(d.Data, "objects.lock"))
}

// names lists a directory that may be missing. It leaves out files that are being written, whose
// names begin with a dot.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if isSafeName(e.Name()) {
			list = append(list, e.Name())
		}
	}
	return list, nil
}

func (d Dirs) objectFile(kind pod.ObjectKind, namespace, name string) (string, error) {
	dir, err := d.kindDir(kind)
	if err != nil {
		return "", err
	}
	if kind.ClusterScoped() != (namespace == "") || namespace != "" && !isSafeName(namespace) || !isSafeName(name) {
		return "", fmt.Errorf("%q in namespace %q: %w of a %s", name, namespace, ErrBadName, kind)
	}
	return filepath.Join(dir, namespace, name), nil
}

// isSafeName reports whether a name is safe as a path element; DNS subdomains are.
func isSafeName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}

// objectsRoot returns the directory of the objects in the data or the runtime directory.
func (d Dirs) objectsRoot(root string) string { return filepath.Join(d.objectsIn(root), "objects") }

func (d Dirs) kindDir(kind pod.ObjectKind) (string, error) {
	dir, ok := objectDirs[kind]
	if !ok {
		return "", fmt.Errorf("%q is not a kind of object", kind)
	}
	switch kind {
	case pod.KindSecret:
		return d.secretsDir()
	case pod.KindNamespace, pod.KindNetworkPolicy:
		d = d.ofUser()
	}
	return filepath.Join(d.objectsRoot(d.Data), dir), nil
}

// secretsLink returns a link, in the data directory, to the directory of Secrets: after a login
// that sets another runtime directory, podrun finds the existing Secrets by it.
func (d Dirs) secretsLink() string { return filepath.Join(d.objectsRoot(d.Data), "secrets") }

func (d Dirs) secretsDir() (string, error) {
	if target, err := os.Readlink(d.secretsLink()); err == nil && isDir(target) && !d.ofOtherBoot(target) {
		// After a reboot another user may have created what the link names.
		return target, Trusted(filepath.Dir(target))
	}
	return filepath.Join(d.objectsRoot(d.Runtime), "secrets"), nil
}

func (d Dirs) linkSecrets() error {
	dir, err := d.secretsDir()
	if err != nil {
		return err
	}
	if err := makeDirs(dir); err != nil {
		return err
	}
	link := d.secretsLink()
	if target, err := os.Readlink(link); err == nil && target == dir {
		return nil
	}
	if err := makeDirs(filepath.Dir(link)); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(dir, link)
}
