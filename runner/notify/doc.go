// Package notify sends the state of a pod, and what its containers write, to the process that runs
// the pod as a systemd unit (sd_notify).
package notify
