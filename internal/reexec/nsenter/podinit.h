// What the keeper (podinit.c) holds for its supervisors (podinit_state.c), and what they say to
// each other over a socket of whole messages, in words:
//
//   supervisor → keeper
//     keep NAME, with a descriptor     hold a duplicate of it; a NAME there is, is replaced
//     watch NAME, with a descriptor    the same, and its input ends a sleep
//     drop NAME
//     forget PID START                 the end of this process is on record
//     serving                          from now on the pod outlives its supervisor
//     stop-recorded                    the stop that was asked for is on record
//     hibernate NANOSECONDS MS         I end: begin another at an input, an end, a stop, or
//                                      this CLOCK_BOOTTIME (0: none); every MS (0: never)
//                                      tell the descriptor "notify" that the pod lives
//     finished CODE                    the pod has ended
//   keeper → supervisor
//     ready                                     the pod's namespaces are held: the first message to a
//                                               keeper's first supervisor
//     exit PID START STATUS NANOSECONDS COMM    a process whose parent has died has ended
//     stop                                      stop the pod gracefully
//
// A supervisor that is not the first finds in its environment _PODRUN_AFTER, "hibernation" or
// "death", and _PODRUN_KEPT_FDS, "NAME=DESCRIPTOR …". After the death of a keeper the first of
// the next one has _PODRUN_AFTER=sandbox instead of "nothing": all that was kept is lost.
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

// podrun_kept has podrun_kept_count elements.
extern struct podrun_kept podrun_kept[PODRUN_KEPT_MAX];
extern int podrun_kept_count;

// podrun_find_kept gives a descriptor by its name, or -1.
int podrun_find_kept(const char *name);

// podrun_read_message takes one message that waits in a socket, obeys it if it is about
// descriptors or ends, and copies it to words otherwise. It returns 0 if there is none,
// and -1 if there will be none.
int podrun_read_message(int channel, char words[PODRUN_MESSAGE_MAX]);

// podrun_pass_kept_fds leaves what is kept to the program that this process executes next;
// it fails without memory.
int podrun_pass_kept_fds(void);

// podrun_reap takes the end of one child and returns its pid, 0 if none has ended. Unless
// it is the supervisor it is kept in mind.
int podrun_reap(int supervisor, int *status);

// podrun_exits_pending says whether a supervisor has still to be told of an end; podrun_send_exits
// tells what it can. podrun_resend_exits begins anew, for another supervisor.
int podrun_exits_pending(void);
void podrun_send_exits(int channel);
void podrun_resend_exits(void);

// podrun_init_config is what a keeper begins with.
struct podrun_init_config {
	char **argv;          // of supervisors
	const char *hostname; // the pod's
	int router;           // the namespace
	int own_userns;          // the containers have a user namespace of their own
	const char *ids;      // the map of its users and groups; NULL: they are the same
	int served;           // an eventfd by which it tells that the pod runs
	sigset_t set, old_mask; // what it waits for, blocked already; the mask of supervisors
	int hostpid;          // it is in the host's PID namespace
	int restarted;          // an earlier keeper was killed
	int stop_asked;          // a stop was asked for that nobody has on record
};

// podrun_init makes this process, PID 1 of a new PID namespace but for hostpid, a keeper and forks its
// first supervisor, which alone returns.
void podrun_init(const struct podrun_init_config *config);

// podrun_become_subreaper makes this process the parent of all its descendants whose parent has
// ended; podrun_kill_descendants kills them all, and returns when there are none. They are for
// a pod in the host's PID namespace, which the kernel does not end with its first process.
void podrun_become_subreaper(void);
void podrun_kill_descendants(void);

// podrun_place_fd puts a descriptor where it is to stay; podrun_move_fd_up, where none is.
void podrun_place_fd(int fd, int where);
int podrun_move_fd_up(int fd);

// podrun_init_loop is the keeper's life, with its first supervisor and the socket to it.
// SIGNALS, ALARM and SERVED are open.
enum { PODRUN_SIGNALS_FD = PODRUN_USER_FD + 1, PODRUN_ALARM_FD, PODRUN_SERVED_FD, PODRUN_FREE_FD };
void podrun_init_loop(const struct podrun_init_config *config, pid_t pid, int channel) __attribute__((noreturn));

// podrun_setup_supervisor is for the child that is to be one.
void podrun_setup_supervisor(int channel, const sigset_t *mask);

// podrun_now is CLOCK_BOOTTIME in nanoseconds.
long long podrun_now(void);
