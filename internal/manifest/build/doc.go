// Package build makes a Plan from a loaded Pod and its images, and the next Plan of a Pod that is changed
// while it runs.
package build
