// A supervisor whose pod is quiet is replaced, in place, by this loop: the same
// process, with the same children and descriptors, in half a megabyte. It executes
// the supervisor again at the first output, connection, end of a child, or signal,
// and when the time has come that the supervisor has left.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "enter.h"

static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1}; // the last is the keeper's

enum { SIGNALS, ALARM, WATCHED, MAX = 256 };

// alarm_at makes a descriptor that is readable from a CLOCK_BOOTTIME on; never for 0.
static int alarm_at(unsigned long long nanoseconds) {
	struct itimerspec at = {.it_value = {nanoseconds / 1000000000ULL, nanoseconds % 1000000000ULL}};
	int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		podrun_die("set the time to wake up");
	return fd;
}

static int child_has_ended(void) {
	siginfo_t info = {0};
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

// still_here tells who serves systemd that the pod's supervisor lives.
static void still_here(int fd) { send(fd, "WATCHDOG=1", 10, MSG_DONTWAIT | MSG_NOSIGNAL); }

void podrun_doze(char **argv, const char *spec, const char *ping) {
	struct pollfd fds[MAX];
	int n = WATCHED, listener = -1, every = -1; // nobody wants to know
	char *rest;
	if (*ping) {
		listener = (int)strtol(ping, &rest, 10);
		every = (int)strtol(rest, &rest, 10);
		still_here(listener);
	}
	unsigned long long until = strtoull(spec, &rest, 10);
	while (*rest && n < MAX)
		fds[n++] = (struct pollfd){.fd = (int)strtol(rest, &rest, 10), .events = POLLIN};

	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
		signal(stops[i], SIG_DFL); // whoever started the pod may ignore them
		sigaddset(&set, stops[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[SIGNALS] = (struct pollfd){.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN};
	fds[ALARM] = (struct pollfd){.fd = alarm_at(until), .events = POLLIN};
	if (fds[SIGNALS].fd < 0)
		podrun_die("wait for signals");
	prctl(PR_SET_NAME, "podrun-asleep", 0, 0, 0);
	podrun_forget_program();

	// A child that ended before its signal was blocked is found here.
	int ready;
	while (!child_has_ended() && (ready = poll(fds, n, every)) <= 0)
		if (ready == 0)
			still_here(listener);
		else if (errno != EINTR)
			podrun_die("wait");
	unsetenv("_PODRUN_ENTER");
	unsetenv("_PODRUN_DOZE");
	unsetenv("_PODRUN_PING");
	// Go unblocks them before it listens: until then they must not kill it.
	const char *wake = "go";
	sigpending(&pending);
	for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
		if (sigismember(&pending, stops[i]))
			wake = "stop";
		signal(stops[i], SIG_IGN);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	setenv("_PODRUN_WAKE", wake, 1);
	execv("/proc/self/exe", argv);
	podrun_die("wake the supervisor");
}
