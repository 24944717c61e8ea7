package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// choose reduces the project to the services of the request, the services they depend on, and the resources of both.
// A named service is active whatever its profiles are, as with docker compose.
func (c *converter) choose() error {
	c.known = slices.Sorted(maps.Keys(c.project.AllServices()))
	names := c.request.Services
	for _, name := range names {
		if !slices.Contains(c.known, name) {
			return fmt.Errorf("there is no service %s: the services are %s", name, strings.Join(c.known, ", "))
		}
	}
	option := types.IncludeDependencies
	if c.request.Alone {
		option = types.IgnoreDependencies
	}
	all, err := c.project.WithServicesEnabled(names...)
	for more := true; more && err == nil; {
		if c.project, err = all.WithSelectedServices(names, option); err == nil {
			before := len(names)
			names = c.withSharing(all, names)
			more = len(names) > before
		}
	}
	if err != nil {
		return err
	}
	c.project = c.project.WithoutUnnecessaryResources()
	c.nameBuilds()
	return nil
}

// withSharing adds the services that share the network of a chosen one: they are in its pod, and a pod without them would
// replace it.
func (c *converter) withSharing(all *types.Project, names []string) []string {
	for name, s := range all.Services {
		_, chosen := c.project.Services[name]
		kind, other, _ := strings.Cut(s.NetworkMode, ":")
		for first, f := range c.project.Services {
			if !chosen && (kind == "service" && other == first || kind == "container" && other == f.ContainerName) {
				names = append(names, name)
			}
		}
	}
	return names
}

// describe adds the project's name, services and builds to a result, as far as they are known.
func (c *converter) describe(r *api.Result) {
	for _, f := range c.files.main {
		r.Files = append(r.Files, c.files.names[f.path])
	}
	if c.project == nil {
		return
	}
	r.Project, r.Known, r.Builds = c.project.Name, c.known, c.builds
	for _, name := range c.project.ServiceNames() {
		s := api.Service{Name: name, Image: c.project.Services[name].Image}
		if len(c.problems) == 0 { // otherwise there may be too many
			s.Pods = c.podsOf(name)
		}
		r.Services = append(r.Services, s)
	}
}

// model returns the merged file, with all variables replaced.
func (c *converter) model() string {
	text, err := c.project.MarshalYAML()
	if err != nil {
		c.problems = append(c.problems, api.Message{Text: "cannot write the merged file: " + err.Error()})
	}
	return string(text)
}
