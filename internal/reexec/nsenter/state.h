// The pod init's state: descriptors that outlive a supervisor, and exits of processes whose parent, a supervisor, has died.
// The pod init and a supervisor exchange messages over a socket of whole messages, each a line of text that begins with a
// word PODRUN_MSG_….
#pragma once

#include "base.h"

struct podrun_kept {
	char name[PODRUN_MAX_KEPT_NAME + 1];
	int fd, watched;
};

// podrun_kept holds podrun_kept_count elements.
extern struct podrun_kept podrun_kept[PODRUN_MAX_KEPT];
extern int podrun_kept_count;

// podrun_find_kept returns the descriptor kept under a name, or -1.
int podrun_find_kept(const char *name);

// podrun_read_message reads one message from a socket. It handles messages about descriptors and
// exits itself and copies any other message to words. It returns 1 after a copy, 0 if no message is
// there now, and -1 if there will be none.
int podrun_read_message(int channel, char words[PODRUN_MAX_MESSAGE]);

// podrun_pass_kept_fds passes the kept descriptors to the program that this process executes next.
// It returns -1 without memory.
int podrun_pass_kept_fds(void);

// podrun_exit is the exit of a child.
struct podrun_exit {
	struct podrun_stat process;
	int status, sent;
	long long at;
};

// podrun_reap reaps one child and returns its pid, or 0 if none has exited. podrun_record_exit records an exit for
// the supervisors.
int podrun_reap(struct podrun_exit *e);
void podrun_record_exit(const struct podrun_exit *e);

// podrun_exits_pending reports whether a supervisor has yet to receive an exit. podrun_send_exits
// sends as many as the socket takes. podrun_resend_exits marks all as unsent, for the next
// supervisor.
int podrun_exits_pending(void);
void podrun_send_exits(int channel);
void podrun_resend_exits(void);
