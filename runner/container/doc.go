// Package container makes, starts, executes commands in, and removes one instance of a container. It
// is the only package that builds libcontainer's configuration.
package container
