// Package services leads connections to a Service's address to the pods behind it: one
// nftables table in the router's network namespace, replaced as a whole, in one
// transaction, by whoever has changed something. No process is in the way of a
// connection, so it matters to nobody's whose supervisor lives.
//
// What it needs of the router: a packet for a Service is led to a pod there, and the
// answer has to come back the same way, or the client would hear from somebody it has
// not asked. So pods have no neighbours: their addresses are /32 and /128, and all they
// send goes through the router, where it is routed by the kernel. And what takes
// connections out to the host lets pass what is meant for a Service or a pod.
package services
