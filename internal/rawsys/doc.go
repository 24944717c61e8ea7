// Package rawsys provides raw system calls, and addresses in the kernel's format.
package rawsys
