// Package procfs reads and writes single files of /proc: the status of processes, the boot id, sysctls.
package procfs
