// Package sandbox makes what the containers of a pod share: namespaces, network, volumes, cgroup and
// the files below /etc.
package sandbox
