// Package prewarm creates containers before they are due, up to the execve of their program, and
// removes ended ones in the background.
package prewarm
