// Declarations shared by the constructor (nsenter.c), the pod init and the pause process.
#pragma once

#include <signal.h>

#include "protocol.h" // descriptors, variables and words of other processes

// podrun_die reports what failed, with errno, and ends the process. It writes to descriptor 2, or
// to the one set by podrun_report_to.
void podrun_die(const char *what) __attribute__((noreturn));
void podrun_report_to(int fd);

// podrun_set_exit_code sets the exit code of podrun_die; the default is 125.
void podrun_set_exit_code(int code);

// podrun_clear_env removes the instructions to this process from the environment of the programs
// that it executes.
void podrun_clear_env(void);

// podrun_prespawn waits at FD_PRESPAWN for the pod that this process belongs to, and
// executes the program as the first process of that pod.
void podrun_prespawn(void) __attribute__((noreturn));

// podrun_monitor leaves a monitor running in the host's PID and mount namespaces. The monitor forks
// a pod init, PID 1 of a new PID namespace, and another one whenever a pod init is killed. Each pod
// init forks a supervisor. The function returns in these supervisors only; a pod init executes
// later supervisors with argv. router is a descriptor of the router namespace; with -1 the monitor
// makes one. A non-empty own_userns gives the pod's containers a user namespace of their own, below
// the one that the user's pods share: "1" keeps the same ids, any other value is the map of its
// users and groups.
void podrun_monitor(char **argv, const char *hostname, int router, const char *own_userns);

// podrun_pause runs as PID 1 of a PID namespace that a pod's containers share. It reaps orphans
// until it is killed.
void podrun_pause(void) __attribute__((noreturn));

// podrun_pause_in_userns starts a pause process in a user namespace, as a child of the caller's
// parent, and writes its pid to standard output.
void podrun_pause_in_userns(int userns) __attribute__((noreturn));

// podrun_unit_loop is the unit loop: it replaces the main process of a systemd unit, and executes the CLI
// with argv when it is needed. spec lists numbers: the pipe with the containers' output, or -1; the
// number of pods; the sockets of their supervisors; and descriptors that wake it.
void podrun_unit_loop(char **argv, const char *spec) __attribute__((noreturn));

// podrun_block_signals blocks the signals for which a process waits with sigwait, and stores them in set. It
// stores the earlier mask in before, unless that is NULL.
void podrun_block_signals(sigset_t *set, sigset_t *before);

// podrun_close_from closes all descriptors from first on.
void podrun_close_from(unsigned first);

// podrun_drop_program_pages drops the read-only pages of the program from memory. They come back
// when they are needed. It is for a process that does little more than wait.
void podrun_drop_program_pages(void);

// podrun_drop_privileges drops all capabilities, so that a process that traces this one gains nothing. It
// makes this process undumpable, so that no process in the pod can trace it: that would require privileges
// in the user namespace to which its memory belongs, the supervisor's.
void podrun_drop_privileges(void);
