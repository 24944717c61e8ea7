// Package router makes and changes the network namespace that the pods of a user share: their veth
// pairs, routes, TUN devices and nftables rules, and the descriptors through which a process
// handles a pod's traffic (TrafficFDs). netns/egress forwards that traffic; netns/masquerade routes
// root's pods through the kernel.
package router
