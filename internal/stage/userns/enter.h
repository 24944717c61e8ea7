// Shared by the constructor (enter.c) and the keeper (keeper.c).
#pragma once

// Descriptors that package stage hands to a pod's first process: start.go.
#define PODRUN_LOCK_FD 3   // the pod's lock: kept by the keeper
#define PODRUN_REPORT_FD 4 // errors of the start; closed when the supervisor serves

// podrun_die tells what failed, with errno, and ends the process.
void podrun_die(const char *what) __attribute__((noreturn));

// podrun_keeper forks the keeper as PID 1 of a new PID namespace and, below it,
// the supervisor. Only the supervisor returns.
void podrun_keeper(const char *hostname);

// podrun_pause is PID 1 of a PID namespace shared by a pod's containers: it
// reaps orphans until it is killed.
void podrun_pause(void) __attribute__((noreturn));

// podrun_doze waits in the supervisor's place until it is needed, and executes it
// with argv. The signals that stop a pod are blocked when it is called. spec is a
// CLOCK_BOOTTIME in nanoseconds (0: none), then the descriptors to watch. ping is empty,
// or a socket to say on that the pod is alive, and every how many milliseconds.
void podrun_doze(char **argv, const char *spec, const char *ping) __attribute__((noreturn));

// podrun_wait stays in the place of a front that serves systemd until it is needed, and
// executes it with argv. spec lists the sockets of the pods' supervisors.
void podrun_wait(char **argv, const char *spec) __attribute__((noreturn));

// podrun_forget_program is for a process that does little more than wait: it unmaps
// what of the program is only read, which comes back as it is needed.
void podrun_forget_program(void);
