// Package rawsys has system calls and their addresses in the form of the kernel.
package rawsys
