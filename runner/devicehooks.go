package runner

import (
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/pod"
)

// hooks are those that come with a container's devices, in the specification's form.
func hooks(list []pod.Hook) *specs.Hooks {
	if len(list) == 0 {
		return nil
	}
	h := &specs.Hooks{}
	places := map[string]*[]specs.Hook{
		"prestart": &h.Prestart, "createRuntime": &h.CreateRuntime, "createContainer": &h.CreateContainer,
		"startContainer": &h.StartContainer, "poststart": &h.Poststart, "poststop": &h.Poststop,
	}
	for _, one := range list {
		hook := specs.Hook{Path: one.Path, Args: one.Args, Env: one.Env}
		if one.Timeout > 0 {
			hook.Timeout = &one.Timeout
		}
		if at := places[one.Name]; at != nil {
			*at = append(*at, hook)
		}
	}
	return h
}
