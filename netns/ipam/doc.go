// Package ipam assigns slots to pods and derives from them the addresses of pods, Services and the
// gateway (IP address management). It is pure: the caller supplies the slots that are taken.
package ipam
