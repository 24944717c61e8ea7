// Package wireguard connects the router with the routers of other nodes of a cluster: a process with a TUN device
// in the router's network namespace, and a UDP socket in the host's. It runs WireGuard in user space, because
// an ordinary user has no device of the kernel whose UDP socket is in the host's network.
//
// The process belongs to the router, not to the agent that starts it: it ends when the router has had no pod
// for a while. The next agent configures it again (package control).
package wireguard
