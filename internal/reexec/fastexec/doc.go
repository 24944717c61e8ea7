// Package fastexec hands commands that have to be quick to the quick front, a program that the
// release carries, before Go begins: see fastexec.c. Importing it, blank, links the constructor
// in; without the build tag embedprograms there is nothing in it.
package fastexec
