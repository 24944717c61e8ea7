// Package nlbatch sends many changes of a network to the kernel in one netlink message: links,
// addresses, routes, rules, neighbours. One message with one answer takes less time than one for
// each.
package nlbatch
