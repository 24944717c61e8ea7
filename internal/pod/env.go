package pod

import "slices"

// EnvFrom makes a variable of each key of a ConfigMap or Secret.
type EnvFrom struct {
	Kind     ObjectKind `json:"kind"`
	Name     string     `json:"name"`
	Prefix   string     `json:"prefix,omitempty"`
	Optional bool       `json:"optional,omitempty"` // a missing object gives no variables
}

// EnvVar is one variable that a container declares: a Value, or a reference From.
type EnvVar struct {
	Name  string  `json:"name"`
	Value string  `json:"value,omitempty"` // $(VAR) in it is expanded from the variables before it
	From  *EnvRef `json:"from,omitempty"`
}

// EnvRef is the source of a variable's value, resolved when the container is created. Exactly one
// of its fields is set.
type EnvRef struct {
	Text  *string  `json:"text,omitempty"`  // the value itself, taken literally
	Field string   `json:"field,omitempty"` // status.podIP, status.podIPs, status.hostIP, status.hostIPs
	Key   *KeyRef  `json:"key,omitempty"`
	File  *FileRef `json:"file,omitempty"`
}

// KeyRef is one key of a ConfigMap or Secret.
type KeyRef struct {
	Kind     ObjectKind `json:"kind"`
	Name     string     `json:"name"`
	Key      string     `json:"key"`
	Optional bool       `json:"optional,omitempty"` // a missing key gives no variable
}

// FileRef is one key of a file of variables (KEP-3721) in a volume of the pod.
type FileRef struct {
	Volume   string `json:"volume"`
	Path     string `json:"path"` // in the volume
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"` // a missing key gives no variable
}

// RequiredSecrets returns the Secrets without which some container of the pod, or a volume, cannot be made.
func (p *Plan) RequiredSecrets() (names []string) {
	add := func(name string, optional bool) {
		if !optional && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range p.Volumes {
		for _, s := range p.Volumes[i].Sources {
			if s.Kind == FromSecret {
				add(s.Name, s.Optional)
			}
		}
	}
	for _, list := range p.All() {
		for i := range list {
			list[i].eachSecret(add)
		}
	}
	return names
}

func (c *Container) eachSecret(add func(name string, optional bool)) {
	for _, from := range c.EnvFrom {
		if from.Kind == KindSecret {
			add(from.Name, from.Optional)
		}
	}
	for _, v := range c.Vars {
		if v.From != nil && v.From.Key != nil && v.From.Key.Kind == KindSecret {
			add(v.From.Key.Name, v.From.Key.Optional)
		}
	}
}

// Refers reports whether the plan refers to an object, so that a change of the object may affect
// its containers, its volumes or its network. Every pod refers to the Services and NetworkPolicies of
// its namespace.
func (p *Plan) Refers(kind ObjectKind, name string) bool {
	if kind.ConcernsServices() || kind == KindNetworkPolicy {
		return true
	}
	for i := range p.Volumes {
		if p.Volumes[i].refers(kind, name) {
			return true
		}
	}
	for _, list := range p.All() {
		for i := range list {
			if list[i].refers(kind, name) {
				return true
			}
		}
	}
	return false
}

func (c *Container) refers(kind ObjectKind, name string) bool {
	for _, f := range c.EnvFrom {
		if f.Kind == kind && f.Name == name {
			return true
		}
	}
	for _, v := range c.Vars {
		if v.From != nil && v.From.Key != nil && v.From.Key.Kind == kind && v.From.Key.Name == name {
			return true
		}
	}
	return false
}
