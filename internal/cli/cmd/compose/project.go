package compose

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// project is a project of this machine with its pods.
type project struct {
	name      string
	namespace string
	dirs      store.Dirs
	members   []member
	known     []string // the services of the file; nil: no file was read
}

// member is a service of a project, with a pod in which it runs.
type member struct {
	store.Pod
	service   string // "": the pod was made by compose run
	first     string // the service that gives the pod its name and network: others may share it
	container string
}

// has reports whether a list of services has a name, in the spelling of the file or of the pod.
func has(list []string, service string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return api.Label(other) == api.Label(service) })
}

// project finds the project and its pods. The name is from -p, the environment, the files or the directory, in this
// order. With readFiles it reads the files, if there are some, even if their name is not needed.
func (o *options) project(readFiles bool) (*project, error) {
	p := &project{name: o.request.Project, namespace: o.namespace}
	if (p.name == "" || readFiles) && o.hasFiles() {
		r, err := compose.Ask(o.env, o.request)
		switch {
		case err != nil:
			return nil, err
		case r.Project == "" && p.name == "":
			return nil, compose.Check(r)
		}
		p.known = r.Known
		if r.Project != "" {
			p.name = r.Project
		}
	}
	if p.name == "" {
		dir, err := o.directory()
		if err != nil {
			return nil, err
		}
		if p.name = compose.ProjectName(dir); p.name == "" {
			return nil, report.New(report.Usage, "podrun compose -p NAME", "the directory's name, %s, cannot be the name of a project", dir)
		}
	}
	var err error
	if p.dirs, err = o.env.Dirs(); err != nil {
		return nil, err
	}
	all, err := members(p.dirs, o.namespace, false)
	p.members = all[p.name]
	return p, err
}

// directory returns the project's directory, if no file decides.
func (o *options) directory() (string, error) {
	if o.request.Directory != "" {
		return o.request.Directory, nil
	}
	return os.Getwd()
}

// hasFiles reports whether the project has compose files.
func (o *options) hasFiles() bool {
	dir, err := o.directory()
	return len(o.request.Files) > 0 || err == nil && compose.Present(o.env, dir)
}

// members returns the services of all projects of a namespace, or of all namespaces, by project.
func members(dirs store.Dirs, namespace string, everywhere bool) (map[string][]member, error) {
	list, err := resource.ListPods(dirs, namespace, everywhere)
	if err != nil {
		return nil, err
	}
	all := map[string][]member{}
	for _, p := range list {
		m, err := podview.ReadManifest(p)
		if err != nil {
			continue // it is being removed
		}
		name, first := m.Metadata.Annotations[podutil.AnnotationComposeProject], m.Metadata.Labels[api.LabelService]
		if name == "" {
			continue
		}
		for _, c := range m.Spec.Containers {
			service := c.Name
			if first == "" || api.Label(first) == c.Name {
				service = first
			}
			all[name] = append(all[name], member{p, service, first, c.Name})
		}
	}
	return all, nil
}

// services returns the names of the services that the project has, by its file or else by its pods.
func (p *project) services() []string {
	list := slices.Clone(p.known)
	for _, m := range p.members {
		if m.service != "" && !has(p.known, m.service) {
			list = append(list, m.service)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// of returns the members of services. Without names it returns all members except the pods of compose run.
func (p *project) of(services []string) (list []member, err error) {
	var errs []error
	for _, name := range services {
		if !has(p.services(), name) {
			errs = append(errs, p.unknown(name))
		}
	}
	for _, m := range p.members {
		if m.service != "" && (len(services) == 0 || has(services, m.service)) {
			list = append(list, m)
		}
	}
	return list, errors.Join(errs...)
}

// selected finds the project and the members of services, as project and of do.
func (o *options) selected(services []string, readFiles bool) (*project, []member, error) {
	p, err := o.project(readFiles)
	if err != nil {
		return nil, nil, err
	}
	list, err := p.of(services)
	return p, list, err
}

// unknown returns the error for a service that the project does not have.
func (p *project) unknown(service string) error {
	if len(p.services()) == 0 {
		return report.New(report.Usage, "podrun compose ls lists the projects; podrun compose -p NAME names one", "there is no service %s: project %s has no pods in namespace %s", service, p.name, p.namespace)
	}
	return report.New(report.Usage, "", "there is no service %s: the services of project %s are %s", service, p.name, strings.Join(p.services(), ", "))
}

// reportEmpty reports that no pod was found.
func (o *options) reportEmpty(p *project) {
	fmt.Fprintln(o.env.ErrOut, report.Escape(fmt.Sprintf("podrun: project %s has no such pods in namespace %s", p.name, p.namespace)))
}

// names returns the names of the pods.
func names(list []member) (words []string) {
	for _, m := range list {
		if !slices.Contains(words, m.Name) {
			words = append(words, m.Name)
		}
	}
	return words
}

// labels returns the names of docker compose for containers: SERVICE-NUMBER.
func labels(list []member) cmdutil.Labels {
	names, width := cmdutil.Labels{}, 0
	for _, m := range list {
		number := strings.TrimPrefix(m.Name, fmt.Sprintf("%.58s-", api.Label(m.service))) // as the pods of replicas are named
		if _, err := strconv.ParseUint(number, 10, 31); err != nil {
			number = "1"
		}
		name := m.service + "-" + number
		names[[2]string{m.Name, m.container}], width = name, max(width, len(name))
	}
	for key, name := range names {
		names[key] = fmt.Sprintf("%-*s ", width, name)
	}
	return names
}

// refuseParts refuses a service that runs in the pod of another service, unless both are chosen: a pod is stopped and
// removed as a whole.
func refuseParts(list []member) error {
	var errs []error
	for _, m := range list {
		if m.service != m.first && !slices.ContainsFunc(list, func(o member) bool { return o.Pod == m.Pod && o.service == m.first }) {
			errs = append(errs, report.New(report.Failure, "", "service %[1]s runs in the pod of service %[2]s, whose network it shares: name %[2]s, too", m.service, m.first))
		}
	}
	return errors.Join(errs...)
}

// convert converts services of the files, or all if there are none. Without alone it adds what they depend on.
func (o *options) convert(services []string, alone bool) (api.Result, error) {
	request := o.request
	request.Services, request.Alone = services, alone
	return compose.Convert(o.env, request)
}
