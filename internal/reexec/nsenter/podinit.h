// What the keeper (keeper.c) holds for its supervisors (kept.c), and what they say to
// each other over a socket of whole messages, in words:
//
//   supervisor → keeper
//     keep NAME, with a descriptor     hold a duplicate of it; a NAME there is, is replaced
//     watch NAME, with a descriptor    the same, and its input ends a sleep
//     drop NAME
//     forget PID START                 the end of this process is on record
//     serving                          from now on the pod outlives its supervisor
//     stopping                         the stop that was asked for is on record
//     doze NANOSECONDS MS              I end: begin another at an input, an end, a stop, or
//                                      this CLOCK_BOOTTIME (0: none); every MS (0: never)
//                                      tell the descriptor "front" that the pod lives
//     over CODE                        the pod has ended
//   keeper → supervisor
//     made                                      the pod's namespaces are held: the first message to a
//                                               keeper's first supervisor
//     exit PID START STATUS NANOSECONDS COMM    a process whose parent has died has ended
//     stop                                      stop the pod gracefully
//
// A supervisor that is not the first finds in its environment _PODRUN_AFTER, "doze" or
// "death", and _PODRUN_KEPT, "NAME=DESCRIPTOR …". After the death of a keeper the first of
// the next one has _PODRUN_AFTER=sandbox instead of "nothing": all that was kept is lost.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "enter.h"

enum {
	PODRUN_KEPT_NAME = 96,
	PODRUN_KEPT_MAX = 1000,
	PODRUN_ENDS_MAX = 1000,
	PODRUN_WORDS_MAX = 160,
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

// podrun_receive takes one message that waits in a socket, obeys it if it is about
// descriptors or ends, and copies it to words otherwise. It returns 0 if there is none,
// and -1 if there will be none.
int podrun_receive(int channel, char words[PODRUN_WORDS_MAX]);

// podrun_hand_down leaves what is kept to the program that this process executes next;
// it fails without memory.
int podrun_hand_down(void);

// podrun_reap takes the end of one child and returns its pid, 0 if none has ended. Unless
// it is the supervisor it is kept in mind.
int podrun_reap(int supervisor, int *status);

// podrun_untold says whether a supervisor has still to be told of an end; podrun_tell
// tells what it can. podrun_tell_again begins anew, for another supervisor.
int podrun_untold(void);
void podrun_tell(int channel);
void podrun_tell_again(void);

// podrun_birth is what a keeper begins with.
struct podrun_birth {
	char **argv;          // of supervisors
	const char *hostname; // the pod's
	int router;           // the namespace
	int apart;            // the containers have a user namespace of their own
	const char *ids;      // the map of its users and groups; NULL: they are the same
	int served;           // an eventfd by which it tells that the pod runs
	sigset_t set, before; // what it waits for, blocked already; the mask of supervisors
	int hostpid;          // it is in the host's PID namespace
	int again;            // an earlier keeper was killed
	int asked;            // a stop was asked for that nobody has on record
};

// podrun_keeper makes this process, PID 1 of a new PID namespace but for hostpid, a keeper and forks its
// first supervisor, which alone returns.
void podrun_keeper(const struct podrun_birth *birth);

// podrun_adopt_orphans makes this process the parent of all its descendants whose parent has
// ended; podrun_end_descendants kills them all, and returns when there are none. They are for
// a pod in the host's PID namespace, which the kernel does not end with its first process.
void podrun_adopt_orphans(void);
void podrun_end_descendants(void);

// podrun_hold puts a descriptor where it is to stay; podrun_out_of_the_way, where none is.
void podrun_hold(int fd, int where);
int podrun_out_of_the_way(int fd);

// podrun_keep is the keeper's life, with its first supervisor and the socket to it.
// SIGNALS, ALARM and SERVED are open.
enum { PODRUN_SIGNALS_FD = PODRUN_USER_FD + 1, PODRUN_ALARM_FD, PODRUN_SERVED_FD, PODRUN_FREE_FD };
void podrun_keep(const struct podrun_birth *birth, pid_t pid, int channel) __attribute__((noreturn));

// podrun_become_supervisor is for the child that is to be one.
void podrun_become_supervisor(int channel, const sigset_t *mask);

// podrun_now is CLOCK_BOOTTIME in nanoseconds.
long long podrun_now(void);
