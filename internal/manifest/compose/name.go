package compose

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// labelValue returns a name as the value of a label: itself, if Kubernetes can hold it.
func labelValue(name string) string {
	if len(name) <= api.MaxLabel && regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`).MatchString(name) {
		return name
	}
	return api.Label(name)
}

// isName reports whether podrun's resolver can answer a name.
func isName(name string) bool {
	return len(name) <= maxName && regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`).MatchString(name)
}

// maxName is the maximum length of a further name of a Service (podutil.ParseNames).
const maxName = 128

// namePath is a name of a service and its place in the files.
type namePath struct {
	name string
	path []string
}

// namesOf returns the names by which other services reach a service, its own first.
func (c *converter) namesOf(s types.ServiceConfig) []namePath {
	list := []namePath{{s.Name, []string{"services", s.Name}}}
	if s.ContainerName != "" {
		list = append(list, namePath{s.ContainerName, []string{"services", s.Name, "container_name"}})
	}
	for _, network := range slices.Sorted(maps.Keys(s.Networks)) {
		if config := s.Networks[network]; config != nil {
			for i, alias := range config.Aliases {
				list = append(list, namePath{alias, []string{"services", s.Name, "networks", network, "aliases", strconv.Itoa(i)}})
			}
		}
	}
	for _, name := range c.project.ServiceNames() {
		for i, link := range c.project.Services[name].Links {
			if target, alias, ok := strings.Cut(link, ":"); ok && target == s.Name {
				list = append(list, namePath{alias, []string{"services", name, "links", strconv.Itoa(i)}})
			}
		}
	}
	return list
}

// owner is the service that has a name.
type owner struct {
	service string
	namePath
}

// ownerNames maps names of services, and the labels made of them, to the services. The names are in lower case: DNS does
// not distinguish cases.
type ownerNames map[string]owner

// claim gives a name to a service, unless another service has it.
func (o ownerNames) claim(key, service string, n namePath) (other owner, free bool) {
	key = strings.ToLower(key)
	other, taken := o[key]
	if taken && other.service != service {
		return other, false
	}
	if !taken {
		o[key] = owner{service, n}
	}
	return owner{}, true
}

// claimNames gives every service its names. The services' own come first.
func (c *converter) claimNames() {
	names := ownerNames{}
	claim := func(service string, n namePath, key string) {
		other, free := names.claim(key, service, n)
		switch {
		case free:
		case strings.EqualFold(n.name, other.name):
			c.refuse(n.path, "is refused: %s is also a name of the service %s", n.name, other.service)
		default:
			c.refuse(n.path, "is refused: %s and %s (line %d) both become %s: rename one", n.name, other.name, c.files.find(other.path...).line, key)
		}
	}
	services := c.project.ServiceNames()
	for _, name := range services {
		n := namePath{name, []string{"services", name}}
		if api.Label(name) == "" {
			c.refuse(n.path, "cannot be the name of a Pod: use a letter or a digit")
		}
		claim(name, n, api.Label(name))
	}
	for _, name := range services {
		if s := c.project.Services[name]; onNetwork(s) {
			for _, n := range c.namesOf(s) {
				if !isName(n.name) {
					c.refuse(n.path, "is refused: %s cannot be a name of DNS: use letters, digits, -, _ and .", n.name)
					continue
				}
				claim(name, n, n.name)
			}
		}
	}
}

// names makes a Service for each name by which other services reach this one. Each is headless: a name
// resolves to the pods, ready or not, and every port is reachable. A name that no Service can have is a further name
// of the first.
func (c *converter) names(s types.ServiceConfig) {
	if !onNetwork(s) {
		return
	}
	var services, others []string
	for _, n := range c.namesOf(s) {
		list := &services
		if !api.IsLabel(n.name) {
			list = &others
		}
		if !slices.Contains(*list, n.name) {
			*list = append(*list, n.name)
		}
	}
	if label := api.Label(s.Name); !slices.Contains(services, label) {
		services = append(services, label)
	}
	slices.Sort(services)
	for _, name := range services {
		meta := c.add("v1", "Service", name, nil, object{"spec": object{
			"clusterIP": "None", "publishNotReadyAddresses": true,
			"selector": object{api.LabelProject: labelValue(c.project.Name), api.LabelService: labelValue(s.Name)},
		}})
		if name == api.Label(s.Name) && len(others) > 0 {
			meta.annotate(annotationNames, strings.Join(others, ","))
		}
	}
}
