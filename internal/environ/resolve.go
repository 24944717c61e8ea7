package environ

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// Sources resolves references. For a missing object or file the error is fs.ErrNotExist.
type Sources struct {
	Object   func(kind pod.ObjectKind, name string) (*pod.Object, error)
	Services func() ([]*pod.Object, error) // whose addresses the pod has in variables
	Field    func(path string) (string, error)
	File     func(volume, path string) ([]byte, error)
}

// Environment is the environment and the argv of a container's processes.
type Environment struct {
	Env  []string // KEY=value
	Args []string // the container's argv

	// Vars are the variables for $(VAR): the declared ones and the variables of Services; not the image's.
	Vars map[string]string

	// Fixed reports that the environment follows from the Plan alone.
	Fixed bool
}

// Resolve returns a container's environment. Errors are the kubelet's, word for word if it has one,
// and contain no value.
func Resolve(plan *pod.Plan, c *pod.Container, from Sources) (*Environment, error) {
	r := resolver{namespace: plan.Namespace, from: from, objects: map[objectID]*pod.Object{}, vars: map[string]string{}, fixed: true}
	services := map[string]string{}
	if plan.ServiceLinks || plan.Cluster != nil {
		list, err := from.Services()
		if err != nil {
			return nil, err
		}
		services = Services(list)
		r.fixed = len(services) == 0
	}
	for _, f := range c.EnvFrom {
		if err := r.all(f); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Vars {
		if err := r.declare(v, services); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if _, declared := r.vars[name]; !declared {
			r.set(name, services[name])
		}
	}
	for _, name := range r.names {
		if strings.IndexByte(r.vars[name], 0) >= 0 {
			return nil, fmt.Errorf("environment variable %s has a NUL byte in its value", name)
		}
	}
	e := &Environment{Vars: r.vars, Fixed: r.fixed, Env: r.env(c.Env), Args: ExpandAll(c.Args, r.vars)}
	if e.Args[0] == "" {
		return nil, fmt.Errorf("container %s has nothing to run: its command is empty with its variables expanded", c.Name)
	}
	return e, nil
}

type objectID struct {
	kind pod.ObjectKind
	name string
}

type resolver struct {
	namespace string
	from      Sources
	objects   map[objectID]*pod.Object
	vars      map[string]string
	names     []string // of vars, in order
	fixed     bool
}

func (r *resolver) set(name, value string) {
	if _, again := r.vars[name]; !again {
		r.names = append(r.names, name)
	}
	r.vars[name] = value
}

// all makes a variable of each key of an object, except keys in binaryData, which are for volumes
// only.
func (r *resolver) all(f pod.EnvFrom) error {
	data, err := r.data(f.Kind, f.Name, f.Optional)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		r.set(f.Prefix+key, data[key])
	}
	return nil
}

// declare sets one variable of the container. An optional variable without a source stays
// unchanged.
func (r *resolver) declare(v pod.EnvVar, services map[string]string) (err error) {
	value, there := expandWith(v.Value, r.vars, services), true
	if v.From != nil && v.Value == "" {
		value, there, err = r.refer(v.From)
	}
	if err == nil && there {
		r.set(v.Name, value)
	}
	return err
}

func (r *resolver) refer(ref *pod.EnvRef) (value string, there bool, err error) {
	if ref.Text != nil {
		return *ref.Text, true, nil
	}
	r.fixed = false
	switch {
	case ref.Key != nil:
		return r.key(ref.Key)
	case ref.File != nil:
		return r.file(ref.File)
	}
	value, err = r.from.Field(ref.Field)
	return value, true, err
}

func (r *resolver) key(k *pod.KeyRef) (string, bool, error) {
	data, err := r.data(k.Kind, k.Name, k.Optional)
	if err != nil {
		return "", false, err
	}
	value, ok := data[k.Key]
	if !ok && !k.Optional {
		err = fmt.Errorf("couldn't find key %s in %s %s/%s", k.Key, k.Kind, r.namespace, k.Name)
	}
	return value, ok, err
}

func (r *resolver) file(f *pod.FileRef) (string, bool, error) {
	text, err := r.from.File(f.Volume, f.Path)
	if err != nil {
		return "", false, fmt.Errorf("couldn't parse env file: %w", err)
	}
	value, err := ParseFile(text, f.Key)
	if err != nil {
		return "", false, fmt.Errorf("couldn't parse env file: %w", err)
	}
	if value == "" && !f.Optional {
		err = fmt.Errorf("environment variable key %q not found in file %q", f.Key, f.Path)
	}
	return value, value != "", err
}

// data returns an object's keys as text, or nil if the object is optional and missing.
func (r *resolver) data(kind pod.ObjectKind, name string, optional bool) (map[string]string, error) {
	r.fixed = false
	id := objectID{kind, name}
	o, ok := r.objects[id]
	if !ok {
		var err error
		o, err = r.from.Object(kind, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && optional:
			return nil, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s %q not found", strings.ToLower(string(kind)), name)
		case err != nil:
			return nil, err
		}
		r.objects[id] = o
	}
	if o.ConfigMap != nil {
		return o.ConfigMap.Data, nil
	}
	data := map[string]string{}
	if o.Secret != nil {
		for key, value := range o.Secret.Data {
			data[key] = string(value)
		}
	}
	return data, nil
}

// env adds the variables to the environment of the container and its image.
func (r *resolver) env(base []string) []string {
	env := slices.Clone(base)
	index := map[string]int{}
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		index[name] = i
	}
	for _, name := range r.names {
		kv := name + "=" + r.vars[name]
		if i, ok := index[name]; ok {
			env[i] = kv
			continue
		}
		env = append(env, kv)
	}
	return env
}
