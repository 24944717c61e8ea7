package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// choose reduces the project to the services of the request and what they depend on, and to the resources of these.
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
	project, err := c.project.WithServicesEnabled(names...)
	if err == nil {
		project, err = project.WithSelectedServices(names, option)
	}
	if err != nil {
		return err
	}
	c.project = project.WithoutUnnecessaryResources()
	c.nameBuilds()
	return nil
}

// describe adds to a result what it has besides the manifest, as far as it is known.
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
