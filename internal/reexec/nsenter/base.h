// What every part of the pod program, and the constructor of the Go programs, uses: errors, the environment, descriptors,
// signals, time and /proc.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "protocol.h" // descriptors, variables and words of other processes

// podrun_die reports what failed, with errno, and ends the process. It writes to descriptor 2, or
// to the one set by podrun_report_to. podrun_die_text reports a text.
void podrun_die(const char *what) __attribute__((noreturn));
void podrun_die_text(const char *text) __attribute__((noreturn));
void podrun_report_to(int fd);
int podrun_report_fd(void);

// podrun_set_exit_code sets the exit code of podrun_die; the default is 125.
void podrun_set_exit_code(int code);

// podrun_env returns the value of a variable, or "". podrun_env_fd returns the descriptor that it names, or -1.
const char *podrun_env(const char *name);
int podrun_env_fd(const char *name);

// podrun_clear_env removes the instructions to this process from the environment of the programs
// that it executes.
void podrun_clear_env(void);

// podrun_write_file writes a text to a file that exists. It reports what it is for, and ends the process, if it cannot.
void podrun_write_file(const char *path, const char *text, const char *what);

// podrun_execute executes the program of a descriptor, with the environment of this process. It returns on failure only.
void podrun_execute(int program, char **argv);

// podrun_close_from closes all descriptors from first on.
void podrun_close_from(unsigned first);

// podrun_place_fd moves a descriptor to a fixed number; podrun_move_fd_up, to PODRUN_MOVED_FDS or above.
void podrun_place_fd(int fd, int where);
int podrun_move_fd_up(int fd);
enum { PODRUN_MOVED_FDS = 32 };

// podrun_block_signals blocks the signals for which a process waits with sigwait, and stores them in set. It
// stores the earlier mask in before, unless that is NULL.
void podrun_block_signals(sigset_t *set, sigset_t *before);

// podrun_is_stop reports whether a signal is a request to stop.
int podrun_is_stop(int sig);

// podrun_drop_program_pages drops the read-only pages of the program from memory. They come back
// when they are needed. It is for a process that does little more than wait.
void podrun_drop_program_pages(void);

// podrun_drop_privileges drops all capabilities, so that a process that traces this one gains nothing. It
// makes this process undumpable, so that no process in the pod can trace it: that would require privileges
// in the user namespace to which its memory belongs, the supervisor's.
void podrun_drop_privileges(void);

// podrun_stat is a part of /proc/PID/stat. podrun_read_stat reads the file of a process, by its pid or
// "self", and returns 0 if it cannot.
struct podrun_stat {
	int pid, ppid;
	unsigned long long start; // in ticks since boot
	char comm[16];
};
int podrun_read_stat(const char *pid, struct podrun_stat *st);

// podrun_now returns CLOCK_BOOTTIME in nanoseconds.
long long podrun_now(void);

// podrun_restarts are the deaths of a process that is started again. podrun_restart_delay counts one more, of a process that
// was started at a CLOCK_BOOTTIME, and returns how long the next one has to wait, in nanoseconds: after some quick
// deaths each next delay doubles, up to max, because a loop of crashes must not keep a board busy.
struct podrun_restarts {
	unsigned quick; // deaths in a row
	long long max;
};
long long podrun_restart_delay(struct podrun_restarts *r, long long started);

// podrun_become_subreaper makes this process the parent of all its descendants whose parent has
// exited. podrun_kill_descendants kills all descendants and returns when none is left. Both are for
// a pod in the host's PID namespace, which the kernel does not end together with its first process.
void podrun_become_subreaper(void);
void podrun_kill_descendants(void);
