// Package prepared creates containers before they are due, up to the execve of their program, and
// removes ended containers in the background.
package prepared
