package systemd

import (
	"path/filepath"
	"strings"
)

// ownService are keys of [Service] that are podrun's to set.
var ownService = map[string]string{
	"ExecStart":    "the unit starts podrun up; write a unit of your own for other commands",
	"ExecStop":     "podrun stops the pod by itself; use ExecStopPost, or a preStop hook of a container",
	"ExecReload":   "podrun sets it: a reload takes the manifest as it is now",
	"NotifyAccess": "podrun sets it",
	"PIDFile":      "podrun tells systemd its process",
	"BusName":      "podrun has no name on a bus",
	"Delegate":     "the pod has a delegated scope beside the unit; strike it",
}

// dependencies are keys of [Unit] that name other units.
var dependencies = []string{"Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Upholds", "Conflicts", "Before", "After"}

// passOn hands the sections of systemd on.
func (p *kubeParser) passOn() {
	p.kube.Extra = map[string][]string{"Install": nil}
	for _, section := range p.q.names {
		if section == "Kube" || section == "Quadlet" {
			continue
		}
		for _, a := range p.q.sections[section] {
			switch section {
			case "Unit":
				a = p.dependency(a)
			case "Service":
				p.service(a)
			case "Install":
			case ownSection:
				p.fail(a, "podrun writes section [%s] itself; strike it", section)
			default:
				if !strings.HasPrefix(section, "X-") {
					p.fail(a, "podrun knows no section [%s] in a .kube file", section)
				}
			}
			p.kube.Extra[section] = append(p.kube.Extra[section], a.String())
		}
	}
	for _, a := range p.q.all("Kube", "SetWorkingDirectory") {
		switch {
		case a.value == "unit":
			p.kube.Extra["Service"] = append(p.kube.Extra["Service"], "WorkingDirectory="+literal(filepath.Dir(p.path)))
		case a.value == "yaml" && len(p.kube.Yaml) > 0:
			p.kube.Extra["Service"] = append(p.kube.Extra["Service"], "WorkingDirectory="+literal(filepath.Dir(p.kube.Yaml[0])))
		case a.value != "yaml":
			p.fail(a, "it is yaml or unit")
		}
	}
}

func (p *kubeParser) service(a assignment) {
	if why, ok := ownService[a.key]; ok {
		p.fail(a, "%s", why)
	}
	if a.key == "Type" && a.value != "notify" {
		p.fail(a, "podrun's units are Type=notify: a pod of restartPolicy Never ends its unit; strike it")
	}
}

// dependency translates the names of other .kube files.
func (p *kubeParser) dependency(a assignment) assignment {
	for _, key := range dependencies {
		if a.key != key {
			continue
		}
		units := strings.Fields(a.value)
		for i, u := range units {
			switch filepath.Ext(u) {
			case ".kube":
				units[i] = strings.TrimSuffix(u, ".kube") + ".service"
			case ".container", ".pod", ".volume", ".network", ".image", ".build":
				p.fail(a, "%s is podman's: name its service", u)
			}
		}
		a.value = strings.Join(units, " ")
	}
	return a
}
