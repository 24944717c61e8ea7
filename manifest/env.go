package manifest

import (
	"strings"
)

// defaultPath is what Docker and containerd give an image without a PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// declared gives the values of the variables that the manifest declares, and their
// names in order. A value sees those above it, and nothing of the image.
func (b *builder) declared() (vars map[string]string, names []string, err error) {
	vars = map[string]string{}
	for _, e := range b.c.Env {
		value := expand(e.Value, vars)
		if e.Value == "" && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			if value, err = fieldValue(b.pod, e.ValueFrom.FieldRef.FieldPath); err != nil {
				return nil, nil, err
			}
		}
		if _, again := vars[e.Name]; !again {
			names = append(names, e.Name)
		}
		vars[e.Name] = value
	}
	return vars, names, nil
}

// env puts a container's environment together. Each later source wins: PATH and
// HOSTNAME, the image's, the manifest's.
func (b *builder) env(vars map[string]string, names []string) []string {
	env := []string{"PATH=" + defaultPath, "HOSTNAME=" + b.hostname}
	for _, kv := range b.image.Env {
		env = setEnv(env, kv)
	}
	for _, name := range names {
		env = setEnv(env, name+"="+vars[name])
	}
	return env
}

// setEnv sets a variable, NAME=value. What is no such thing is dropped.
func setEnv(env []string, kv string) []string {
	name, _, ok := strings.Cut(kv, "=")
	if !ok || name == "" || strings.IndexByte(kv, 0) >= 0 {
		return env
	}
	for i := range env {
		if strings.HasPrefix(env[i], name+"=") {
			env[i] = kv
			return env
		}
	}
	return append(env, kv)
}
