// Package network connects a pod: its place in the router, egress, ports of the host, Services and DNS. It
// does not deal with volumes and containers.
package network
