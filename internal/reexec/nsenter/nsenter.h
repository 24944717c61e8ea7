// Shared by the constructor (nsenter.c), the keeper and the pause process.
#pragma once

#include <signal.h>

// Descriptors that package stage hands to a pod's first process: start.go.
#define PODRUN_LOCK_FD 3   // the pod's lock: kept by the guard and the keeper
#define PODRUN_REPORT_FD 4 // errors of the start; closed when the supervisor serves and the keeper knows

// Of one that was begun ahead: its socket to who has begun it. prespawn.go has it, too.
#define PODRUN_PRESPAWN_FD 3

// Descriptors of the keeper at which others look: start.go.
#define PODRUN_NET_FD 5
#define PODRUN_IPC_FD 6
#define PODRUN_UTS_FD 7
#define PODRUN_ROUTER_FD 8 // the network namespace that the pods of a user share
#define PODRUN_USER_FD 9   // the user namespace of the pod's containers, if it has one of its own

// Of a supervisor: its socket to the keeper, and the exit code with which it says that
// no other could take the pod up either. client.go has both.
#define PODRUN_CHANNEL_FD 3
#define PODRUN_EXIT_UNRECOVERABLE 125

// podrun_die tells what failed, with errno, and ends the process. It tells it to
// descriptor 2, or where podrun_report_to says.
void podrun_die(const char *what) __attribute__((noreturn));
void podrun_report_to(int fd);

// podrun_set_exit_code sets the exit code of podrun_die, which is 125.
void podrun_set_exit_code(int code);

// podrun_clear_env keeps what was said to this process from the programs that
// it executes.
void podrun_clear_env(void);

// podrun_prespawn waits, at PODRUN_PRESPAWN_FD, to be told of which pod this process is the first,
// and executes the program as that.
void podrun_prespawn(void) __attribute__((noreturn));

// podrun_monitor leaves a guard behind, in the host's PID and mount namespaces, which has
// keepers: PID 1 of a new PID namespace, one after the other should they be killed. Below
// each is a supervisor, and only supervisors return; keepers execute later ones with argv.
// router is a descriptor of the router namespace, or -1: then one is made. own_userns, if not
// empty, says that the pod's containers have a user namespace of their own, below that of the
// user's pods: "1" with the same ids, else the map of its users and groups.
void podrun_monitor(char **argv, const char *hostname, int router, const char *own_userns);

// podrun_pause is PID 1 of a PID namespace shared by a pod's containers: it
// reaps orphans until it is killed.
void podrun_pause(void) __attribute__((noreturn));

// podrun_pause_in_userns begins one in a user namespace as a child of the caller's parent, and
// writes its pid to standard output.
void podrun_pause_in_userns(int userns) __attribute__((noreturn));

// podrun_unit_wait stays in the place of a front that serves systemd until it is needed, and
// executes it with argv. spec lists numbers: the pipe with the containers' output, or -1,
// how many pods there are, the sockets of their supervisors, and descriptors that wake it.
void podrun_unit_wait(char **argv, const char *spec) __attribute__((noreturn));

// podrun_block_signals blocks the signals that a waiting process takes one by one.
void podrun_block_signals(sigset_t *set, sigset_t *before);

// podrun_close_from closes all descriptors from one on.
void podrun_close_from(unsigned first);

// podrun_drop_program_pages is for a process that does little more than wait: it unmaps
// what of the program is only read, which comes back as it is needed.
void podrun_drop_program_pages(void);
