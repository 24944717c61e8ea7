// Package router makes and changes the network namespace that the pods of a user share: their veth
// pairs, routes, TUN devices and nftables rules, and the descriptors by which a process takes a pod's
// traffic (TrafficFDs). netns/egress carries it, netns/masquerade leads root's out by the kernel.
package router
