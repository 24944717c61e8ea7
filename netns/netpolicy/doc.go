// Package netpolicy enforces network policies: which peers a pod may connect to, and which may
// connect to it (Kubernetes: NetworkPolicy). Isolate computes what the policies allow for each pod.
// Apply makes it one nftables table in the router's network namespace, which every packet of a pod
// passes. The process that has changed something replaces the table as a whole, so it does not
// depend on any supervisor.
//
// The rules check every packet, not only the first one of a connection. A connection that a changed
// policy no longer allows stops with its next packet. The kernel's connection tracking provides the
// direction of a connection: replies are allowed if the connection is.
package netpolicy
