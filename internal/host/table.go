package host

// table is every probe of this room, in the order in which they are reported:
// what no pod can do without comes first, the user's own things before the
// machine's.
func (v view) table() []Probe {
	return []Probe{
		{"kernel", true, v.kernel},
		{"namespaces", true, v.namespaces},
		{UserNamespaces, true, v.userns},
		{"seccomp", true, v.seccomp},
		{"data directory", true, v.data},
		{"runtime directory", true, v.runtime},
		{IDTools, false, v.tools},
		{SubIDs, false, v.subids},
		{Limits, false, v.limits},
		{"memory controller", false, v.memoryController},
		{"cgroup features", false, v.cgroupFeatures},
		{"memory", false, v.memory},
		{"disk space", false, v.space},
		{"inodes", false, v.inodes},
		{"lingering", false, v.lingering},
		{"clock", false, v.clock},
		{"tun device", false, v.tun},
	}
}
