// Package network connects a pod: its place in the router, egress, ports of the host, Services and
// DNS. It knows no volumes and no containers.
package network
