// Package resources computes the effective requests and limits of a Pod and its containers, and its QoS
// class.
package resources
