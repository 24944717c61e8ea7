// The parts of the pod program: see pod.c.
#pragma once

// podrun_pod_program runs the part of the pod program that PODRUN_ENV_ENTER names. argv are the arguments of the process. It is
// weak because the programs of a release do not link it: there the pod program is a file of its own. In a plain build each
// program is the pod program, too.
void podrun_pod_program(char **argv) __attribute__((noreturn, weak));

// podrun_first enters the user namespace, waits for the pod at PODRUN_FD_FIRST, and executes this program again for it.
void podrun_first(void) __attribute__((noreturn));

// podrun_monitor leaves a monitor running in the host's PID and mount namespaces, and exits. The monitor forks
// a pod init, PID 1 of a new PID namespace, and another one whenever a pod init is killed. argv are the arguments of the
// supervisors. PODRUN_ENV_HOSTNAME, PODRUN_ENV_SUPERVISOR, PODRUN_ENV_ROUTER, PODRUN_ENV_OWN_USER_NS and PODRUN_ENV_HOST_PID
// describe the pod; without a router the monitor makes one.
void podrun_monitor(char **argv) __attribute__((noreturn));

// podrun_pause runs as PID 1 of a PID namespace that a pod's containers share. It reaps orphans
// until it is killed. With PODRUN_ENV_USER_NS it starts a process for that, in this user namespace, as a child of the
// caller's parent, and writes its pid to standard output.
void podrun_pause(void) __attribute__((noreturn));

// podrun_unit_loop is the unit loop: it replaces the main process of a systemd unit, and executes the CLI
// with argv when it is needed. PODRUN_ENV_UNIT_LOOP lists numbers: the CLI's program; the pipe with the containers' output,
// or -1; the number of pods; the sockets of their supervisors; and descriptors that wake it.
void podrun_unit_loop(char **argv) __attribute__((noreturn));
