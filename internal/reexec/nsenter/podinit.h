// Declarations of the pod init (podinit.c, state in podinit_state.c) and of what starts it. The pod
// init and a supervisor exchange messages over a socket of whole messages, each a line of text that
// begins with a word MSG_….
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "nsenter.h"

struct podrun_kept {
	char name[MAX_KEPT_NAME + 1];
	int fd, watched;
};

// podrun_kept holds podrun_kept_count elements.
extern struct podrun_kept podrun_kept[MAX_KEPT];
extern int podrun_kept_count;

// podrun_find_kept returns the descriptor kept under a name, or -1.
int podrun_find_kept(const char *name);

// podrun_read_message reads one message from a socket. It handles messages about descriptors and
// exits itself and copies any other message to words. It returns 1 after a copy, 0 if no message is
// there now, and -1 if there will be none.
int podrun_read_message(int channel, char words[MAX_MESSAGE]);

// podrun_pass_kept_fds passes the kept descriptors to the program that this process executes next.
// It returns -1 without memory.
int podrun_pass_kept_fds(void);

// podrun_reap reaps one child and returns its pid, or 0 if none has exited. It records the exit
// unless the child is the supervisor or a prober.
int podrun_reap(int supervisor, int *status);

// podrun_exits_pending reports whether a supervisor has yet to receive an exit. podrun_send_exits
// sends as many as the socket takes. podrun_resend_exits marks all as unsent, for the next
// supervisor.
int podrun_exits_pending(void);
void podrun_send_exits(int channel);
void podrun_resend_exits(void);

// podrun_start_probers starts probers, each of which runs one probe of the table KEPT_PROBES, and
// exits when that does not succeed. It returns -1 if it cannot. podrun_stop_probers ends them
// together with what they run, podrun_forget_prober reports whether a process that was reaped is one
// of them, and podrun_count_probers returns how many run.
int podrun_start_probers(int count);
void podrun_stop_probers(void);
int podrun_forget_prober(pid_t pid);
int podrun_count_probers(void);

// podrun_init_config is the configuration of a pod init.
struct podrun_init_config {
	char **argv;          // arguments of the supervisors
	const char *hostname; // the pod's
	int router;           // descriptor of the router's network namespace
	int own_userns;       // the containers have a user namespace of their own
	const char *ids;      // the map of its users and groups; NULL: the same ids
	int served;           // an eventfd by which the pod init reports that the pod runs
	unsigned long long monitor_start; // the monitor's start time, in ticks since boot
	sigset_t set, old_mask; // the signals that it waits for, blocked already; the mask of supervisors
	int hostpid;          // the pod init is in the host's PID namespace
	int restarted;        // an earlier pod init was killed
	int stop_asked;       // a stop was requested and is not recorded yet
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
// to it. The descriptors FD_SIGNALS, FD_ALARM and FD_SERVED are open.
enum { FD_SIGNALS = FD_USER + 1, FD_ALARM, FD_SERVED, FD_FREE };
void podrun_init_loop(const struct podrun_init_config *config, pid_t pid, int channel) __attribute__((noreturn));

// podrun_setup_supervisor prepares the child that becomes a supervisor.
void podrun_setup_supervisor(int channel, const sigset_t *mask);

// podrun_stat is a part of /proc/PID/stat. podrun_read_stat reads that of a process, by its pid or
// "self", and returns 0 if it cannot.
struct podrun_stat {
	int pid, ppid;
	unsigned long long start; // in ticks since boot
	char comm[16];
};
int podrun_read_stat(const char *pid, struct podrun_stat *st);

// podrun_now returns CLOCK_BOOTTIME in nanoseconds.
long long podrun_now(void);
