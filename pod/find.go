package pod

// All returns the lists of the plan's containers.
func (p *Plan) All() [][]Container { return [][]Container{p.InitContainers, p.Containers, p.Ephemeral} }

// Container returns a container of any kind by name.
func (p *Plan) Container(name string) (*Container, bool) {
	for _, list := range p.All() {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}

// Container returns the status of a container of any kind by name.
func (s *Status) Container(name string) (*ContainerStatus, bool) {
	for _, list := range [][]ContainerStatus{s.InitContainers, s.Containers, s.Ephemeral} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}
