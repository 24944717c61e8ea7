// Package procfs reads /proc/PID/stat, and identifies, signals and waits for processes by PID and start time.
package procfs
