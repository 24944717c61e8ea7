// Package ipam gives a pod its slot, and derives from it the addresses of pods, Services and the gateway
// (IP address management). It is pure: which slots are taken is the caller's to know.
package ipam
