package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// Objects are one small file each, named as the object itself. Secrets are in the
// runtime directory, which is in memory, and nowhere else: a reboot clears them.

// objectDirs names the directory of each kind.
var objectDirs = map[pod.ObjectKind]string{
	pod.KindConfigMap: "configmaps",
	pod.KindSecret:    "secrets",
	pod.KindClaim:     "claims",
	pod.KindService:   "services",
	pod.KindNamespace: "namespaces",

	pod.KindDeployment:  "deployments",
	pod.KindReplicaSet:  "replicasets",
	pod.KindStatefulSet: "statefulsets",
	pod.KindDaemonSet:   "daemonsets",
	pod.KindJob:         "jobs",
	pod.KindCronJob:     "cronjobs",
}

// ErrBadName says that what was asked for cannot be the name of anything.
var ErrBadName = errors.New("no name")

// maxName is the length of a DNS subdomain, and what a file name has room for.
const maxName = 253

// PutObject makes or replaces an object, durably unless it is a Secret.
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

// Object reads one object. One that is not there gives fs.ErrNotExist.
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
	case errors.As(err, new(*fs.PathError)): // it is not there, or cannot be read, which says nothing of what it is
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

// matches says whether an object is what was asked for, with what its kind has.
func matches(o *pod.Object, kind pod.ObjectKind, namespace, name string) bool {
	lacks := map[pod.ObjectKind]bool{
		pod.KindConfigMap: o.ConfigMap == nil, pod.KindSecret: o.Secret == nil,
		pod.KindClaim: o.Claim == nil, pod.KindService: o.Service == nil,
	}
	return o.Kind == kind && o.Namespace == namespace && o.Name == name && !lacks[kind]
}

// CorruptError is the error of who has read all objects but those that it names.
type CorruptError struct{ error }

func (d CorruptError) Unwrap() error { return d.error }

// Objects reads all objects of a kind in a namespace, or in all of them if it is "",
// by namespace and name. Those that are damaged, or may not be read, are left out, and said
// by an error that is Damaged.
func (d Dirs) Objects(kind pod.ObjectKind, namespace string) ([]*pod.Object, error) {
	root, err := d.kindDir(kind)
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	spaces := []string{namespace}
	if namespace == "" && kind != pod.KindNamespace {
		if spaces, err = names(root); err != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
	}
	var list []*pod.Object
	var damaged []error
	for _, space := range spaces {
		if space != "" && !isSafeName(space) {
			return nil, fmt.Errorf("list objects of kind %s: %q is no namespace", kind, space)
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

// Services are those of the pod's namespace.
func (p Pod) Services() ([]*pod.Object, error) {
	return p.dirs.Objects(pod.KindService, p.Namespace)
}

// EnvFile keeps the environment of one instance of a container, for commands that are
// run in it later. It may hold values of Secrets.
func (p Pod) EnvFile(container string, attempt int) string {
	return filepath.Join(p.runtime, fmt.Sprintf("env-%s-%d", container, attempt))
}

// DeleteObject removes an object. One that is not there gives fs.ErrNotExist.
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
	if kind != pod.KindNamespace {
		os.Remove(dir) // the namespace's directory, if this was its last object
	}
	return d.bumpVersionForService(kind)
}

// LockObjects keeps others from changing objects until it is closed: what one who
// changes has read is what is there.
func (d Dirs) LockObjects() (*FileLock, error) {
	l, err := OpenFileLock(filepath.Join(d.Runtime, "objects.lock"))
	if err != nil {
		return nil, err
	}
	if err := l.Exclusive(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// names lists what is in a directory that may not be there; what is being written
// begins with a dot.
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
	if (kind == pod.KindNamespace) != (namespace == "") || namespace != "" && !isSafeName(namespace) || !isSafeName(name) {
		return "", fmt.Errorf("%q in namespace %q: %w of a %s", name, namespace, ErrBadName, kind)
	}
	return filepath.Join(dir, namespace, name), nil
}

// isSafeName says whether a name stays where it is put: DNS subdomains do.
func isSafeName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}

func (d Dirs) kindDir(kind pod.ObjectKind) (string, error) {
	dir, ok := objectDirs[kind]
	if !ok {
		return "", fmt.Errorf("%q is no kind of object", kind)
	}
	if kind == pod.KindSecret {
		return d.secretsDir()
	}
	return filepath.Join(d.Data, "objects", dir), nil
}

// secretsLink names the directory of Secrets in the data directory: one that logs in
// later, with another runtime directory, finds those that are there.
func (d Dirs) secretsLink() string { return filepath.Join(d.Data, "objects", "secrets") }

func (d Dirs) secretsDir() (string, error) {
	if at, err := os.Readlink(d.secretsLink()); err == nil && isDir(at) {
		// After a reboot somebody else may have made what the link names.
		return at, Trusted(filepath.Dir(at))
	}
	return filepath.Join(d.Runtime, "objects", "secrets"), nil
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
	if at, err := os.Readlink(link); err == nil && at == dir {
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
