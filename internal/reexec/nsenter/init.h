// The pod init: see init.c.
#pragma once

#include "base.h"

// podrun_pod is what all processes of the pod program know about their pod.
struct podrun_pod {
	char **argv;          // arguments of the supervisors
	int program;          // descriptor of their program
	const char *hostname; // the pod's
	int router;           // descriptor of the router's network namespace
	int own_userns;       // the containers have a user namespace of their own, below the one that the user's pods share
	const char *ids;      // the map of its users and groups; NULL: the same ids
	int served;           // an eventfd by which the pod init reports that the pod runs
	unsigned long long monitor_start; // the monitor's start time, in ticks since boot
	sigset_t set, old_mask; // the signals that it waits for, blocked already; the mask of supervisors
	int hostpid;          // the pod init is in the host's PID namespace
	int restarted;        // an earlier pod init was killed
	int stop_asked;       // a stop was requested and is not recorded yet
};

// Descriptors of the monitor and the pod init, after the descriptors of the protocol.
enum { PODRUN_FD_SIGNALS = PODRUN_FD_USER + 1, PODRUN_FD_ALARM, PODRUN_FD_SERVED, PODRUN_FD_PROGRAM, PODRUN_FD_FREE };

// podrun_init_loop is the pod init's main loop. It begins with the first supervisor and the socket
// to it. The descriptors PODRUN_FD_SIGNALS, PODRUN_FD_ALARM, PODRUN_FD_SERVED and PODRUN_FD_PROGRAM are open.
void podrun_init_loop(const struct podrun_pod *pod, pid_t pid, int channel) __attribute__((noreturn));

// podrun_execute_supervisor makes this process a supervisor. channel is its socket to the pod init. It returns on
// failure only.
void podrun_execute_supervisor(const struct podrun_pod *pod, int channel);
