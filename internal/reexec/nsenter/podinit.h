// The protocol between the pod init (podinit.c, state in podinit_state.c) and its supervisors: a
// socket of whole messages, each a line of text.
//
//   supervisor → pod init
//     keep NAME, with a descriptor     hold a duplicate of it; it replaces an existing NAME
//     watch NAME, with a descriptor    the same; its input also ends a hibernation
//     drop NAME                        close the descriptor
//     forget PID START                 the exit of this process is recorded
//     serving                          from now on the pod outlives its supervisor
//     stop-recorded                    the requested stop is recorded
//     hibernate NANOSECONDS MS         the supervisor exits: start another at an input, an exit, a
//                                      stop, or this CLOCK_BOOTTIME (0: none); every MS (0: never)
//                                      send to the descriptor "notify" that the pod is alive
//     finished CODE                    the pod has ended
//   pod init → supervisor
//     ready                                     the pod's namespaces are held: the first message to a
//                                               pod init's first supervisor
//     exit PID START STATUS NANOSECONDS COMM    a process whose parent has died has exited
//     stop                                      stop the pod gracefully
//
// A supervisor that is not the first has in its environment _PODRUN_AFTER, "hibernation" or
// "death", and _PODRUN_KEPT_FDS, "NAME=DESCRIPTOR …". After a pod init was killed, the first
// supervisor of the next one has _PODRUN_AFTER=sandbox instead of "nothing": all kept state is
// lost.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "nsenter.h"

enum {
	PODRUN_KEPT_NAME = 96,
	PODRUN_KEPT_MAX = 1000,
	PODRUN_EXITS_MAX = 1000,
	PODRUN_MESSAGE_MAX = 160,
};

struct podrun_kept {
	char name[PODRUN_KEPT_NAME];
	int fd, watched;
};

// podrun_kept holds podrun_kept_count elements.
extern struct podrun_kept podrun_kept[PODRUN_KEPT_MAX];
extern int podrun_kept_count;

// podrun_find_kept returns the descriptor kept under a name, or -1.
int podrun_find_kept(const char *name);

// podrun_read_message reads one message from a socket. It handles messages about descriptors and
// exits itself and copies any other message to words. It returns 1 after a copy, 0 if no message is
// there now, and -1 if there will be none.
int podrun_read_message(int channel, char words[PODRUN_MESSAGE_MAX]);

// podrun_pass_kept_fds passes the kept descriptors to the program that this process executes next.
// It returns -1 without memory.
int podrun_pass_kept_fds(void);

// podrun_reap reaps one child and returns its pid, or 0 if none has exited. It records the exit
// unless the child is the supervisor.
int podrun_reap(int supervisor, int *status);

// podrun_exits_pending reports whether a supervisor has yet to receive an exit. podrun_send_exits
// sends as many as the socket takes. podrun_resend_exits marks all as unsent, for the next
// supervisor.
int podrun_exits_pending(void);
void podrun_send_exits(int channel);
void podrun_resend_exits(void);

// podrun_init_config is the configuration of a pod init.
struct podrun_init_config {
	char **argv;          // arguments of the supervisors
	const char *hostname; // the pod's
	int router;           // descriptor of the router's network namespace
	int own_userns;          // the containers have a user namespace of their own
	const char *ids;      // the map of its users and groups; NULL: the same ids
	int served;           // an eventfd by which the pod init reports that the pod runs
	sigset_t set, old_mask; // the signals that it waits for, blocked already; the mask of supervisors
	int hostpid;          // the pod init is in the host's PID namespace
	int restarted;          // an earlier pod init was killed
	int stop_asked;          // a stop was requested and is not recorded yet
};

// podrun_init makes this process a pod init and forks its first supervisor. The function returns in
// that supervisor only. The process is PID 1 of a new PID namespace, except with hostpid.
void podrun_init(const struct podrun_init_config *config);

// podrun_become_subreaper makes this process the parent of all its descendants whose parent has
// exited. podrun_kill_descendants kills all descendants and returns when none is left. Both are for
// a pod in the host's PID namespace, which the kernel does not end together with its first process.
void podrun_become_subreaper(void);
void podrun_kill_descendants(void);

// podrun_place_fd moves a descriptor to a fixed number; podrun_move_fd_up, above all fixed numbers.
void podrun_place_fd(int fd, int where);
int podrun_move_fd_up(int fd);

// podrun_init_loop is the pod init's main loop. It begins with the first supervisor and the socket
// to it. The descriptors SIGNALS, ALARM and SERVED are open.
enum { PODRUN_SIGNALS_FD = PODRUN_USER_FD + 1, PODRUN_ALARM_FD, PODRUN_SERVED_FD, PODRUN_FREE_FD };
void podrun_init_loop(const struct podrun_init_config *config, pid_t pid, int channel) __attribute__((noreturn));

// podrun_setup_supervisor prepares the child that becomes a supervisor.
void podrun_setup_supervisor(int channel, const sigset_t *mask);

// podrun_now returns CLOCK_BOOTTIME in nanoseconds.
long long podrun_now(void);
