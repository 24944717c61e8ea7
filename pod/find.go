package pod

// Container finds a container, init or app, by name.
func (p *Plan) Container(name string) (*Container, bool) {
	for _, list := range [][]Container{p.InitContainers, p.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}

// Container finds a container's status, init or app, by name.
func (s *Status) Container(name string) (*ContainerStatus, bool) {
	for _, list := range [][]ContainerStatus{s.InitContainers, s.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}
