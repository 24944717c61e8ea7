// Package services directs connections to a Service's address to the pods behind it: one nftables
// table in the router's network namespace. The process that has changed something replaces it as a
// whole, in one transaction. No process forwards the connections, so they do not depend on any
// supervisor.
//
// Requirements on the router: a packet to a Service is directed to a pod, and the answer must come
// back the same way, or the client would get an answer from another address than it has sent to. So
// pods have no neighbours: their addresses are /32 and /128, and everything they send goes through
// the router, where the kernel routes it. The rules that take connections out to the host let
// packets to Services and pods pass.
package services
