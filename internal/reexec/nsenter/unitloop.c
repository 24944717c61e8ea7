//go:build !podprogram

// The unit loop replaces, by exec, an idle `podrun up` or controller that is the main process of a
// systemd unit; it needs some tens of kilobytes. It forwards the messages of the pods' supervisors to systemd
// and the containers' output to the journal. It executes the CLI again at a signal, when a
// supervisor has gone, and when a descriptor that the CLI has left for that purpose is readable: a
// timer, or a watch for changed files.
#define _GNU_SOURCE
#include "pod.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"

enum { MAX_PODS = 1000, MAX_STATUS = 160 }; // as many as descriptors may be open
enum { STOPS, OUTPUT, FIRST_POD }; // indices of the descriptors

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

static struct pod {
	int alive; // it has pinged since the last message to systemd
	char status[MAX_STATUS];
} pods[MAX_PODS];

// send_notify sends a message to systemd. Errors are ignored: they must not affect the pod.
static void send_notify(const char *text) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;
	if (n == 0 || n >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, path, n);
	if (to.sun_path[0] == '@') // abstract
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + n);
	close(fd);
}

static void send_status(int n) {
	static char text[MAX_PODS * (MAX_STATUS + 2) + 16];
	size_t at = snprintf(text, sizeof text, PODRUN_NOTIFY_STATUS);
	for (int i = 0; i < n; i++)
		at += snprintf(text + at, sizeof text - at, "%s%s", i ? "; " : "", pods[i].status);
	send_notify(text);
}

// read_message receives one message of a supervisor. It returns 1 and sets *changed for a new
// status, 0 if no message is there now, and -1 if there will be no more.
static int read_message(int fd, struct pod *from, int *changed) {
	char text[sizeof PODRUN_NOTIFY_STATUS - 1 + MAX_STATUS];
	ssize_t got = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	text[got] = 0;
	size_t n = strlen(PODRUN_NOTIFY_STATUS);
	if (!strncmp(text, PODRUN_NOTIFY_STATUS, n)) {
		snprintf(from->status, sizeof from->status, "%s", text + n);
		*changed = 1;
	}
	from->alive = 1; // any message is a ping
	return 1;
}

// read_notifications reads the messages of a supervisor and returns 0 if there will be no more. It
// forwards only the last of several states of the pod. It pings systemd's watchdog when all pods
// have pinged, because one live pod proves nothing about another.
static int read_notifications(int fd, struct pod *from, int n) {
	int changed = 0, more;
	while ((more = read_message(fd, from, &changed)) > 0)
		;
	if (changed)
		send_status(n);
	if (more < 0)
		return 0;
	for (int i = 0; i < n; i++)
		if (!pods[i].alive)
			return 1;
	for (int i = 0; i < n; i++)
		pods[i].alive = 0;
	send_notify(PODRUN_NOTIFY_WATCHDOG);
	return 1;
}

static struct {
	int from; // the pipe
	char text[4096];
	size_t held; // bytes of text that are not written yet
} output;

// copy moves the containers' output from the pipe to standard output. While standard output takes
// nothing the pipe fills, and the supervisors handle that.
static void copy(struct pollfd *at) {
	if (output.held == 0) {
		ssize_t got = read(output.from, output.text, sizeof output.text);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			at->fd = -1; // no writer is left
		else if (got > 0)
			output.held = got;
	}
	if (output.held > 0) {
		ssize_t put = send(STDOUT_FILENO, output.text, output.held, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (put < 0 && errno == ENOTSOCK)
			put = write(STDOUT_FILENO, output.text, output.held);
		if (put < 0 && errno != EAGAIN && errno != EINTR)
			put = output.held; // standard output is gone
		if (put > 0) {
			output.held -= put;
			memmove(output.text, output.text + put, output.held);
		}
	}
	if (at->fd >= 0)
		*at = output.held ? (struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT} : (struct pollfd){.fd = output.from, .events = POLLIN};
}

// watchdog_interval returns how often to ping systemd's watchdog for a CLI without supervisors,
// which would ping otherwise: in milliseconds, -1 for never.
static int watchdog_interval(int pods) {
	const char *usec = getenv("WATCHDOG_USEC");
	long long n = usec && !pods ? atoll(usec) / 3000 : 0;
	return n > 0 && n < 86400000 ? (int)n : -1;
}

// wait_until_needed returns when the CLI is needed: n descriptors belong to pods, and wakers is the
// number of those that wake it.
static void wait_until_needed(struct pollfd *fds, int n, int wakers) {
	int every = watchdog_interval(n);
	for (;;) {
		int ready = poll(fds, FIRST_POD + n + wakers, every);
		if (ready == 0)
			send_notify(PODRUN_NOTIFY_WATCHDOG);
		if (ready < 0) {
			if (errno != EINTR)
				podrun_die("wait");
			continue;
		}
		if (fds[OUTPUT].revents)
			copy(&fds[OUTPUT]);
		if (fds[STOPS].revents)
			return;
		for (int i = 0; i < n; i++)
			if (fds[FIRST_POD + i].revents && !read_notifications(fds[FIRST_POD + i].fd, &pods[i], n))
				return;
		for (int i = 0; i < wakers; i++)
			if (fds[FIRST_POD + n + i].revents)
				return;
	}
}

// read_spec reads PODRUN_ENV_UNIT_LOOP into the descriptors of the loop, and returns the CLI's.
static int read_spec(const char *spec, struct pollfd fds[static FIRST_POD + MAX_PODS], int *n, int *wakers) {
	char *rest = (char *)spec;
	int cli = (int)strtol(rest, &rest, 10);
	output.from = (int)strtol(rest, &rest, 10);
	fds[OUTPUT] = (struct pollfd){.fd = output.from, .events = POLLIN};
	int of_pods = (int)strtol(rest, &rest, 10);
	*n = *wakers = 0;
	while (*rest && *n + *wakers < MAX_PODS) {
		char *word = rest;
		fds[FIRST_POD + *n + *wakers] = (struct pollfd){.fd = (int)strtol(word, &rest, 10), .events = POLLIN};
		if (rest == word)
			break; // no number
		*n < of_pods ? ++*n : ++*wakers;
	}
	return cli;
}

void podrun_unit_loop(char **argv) {
	struct pollfd fds[FIRST_POD + MAX_PODS];
	int n, wakers, cli = read_spec(podrun_env(PODRUN_ENV_UNIT_LOOP), fds, &n, &wakers);
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		signal(signals[i], SIG_DFL);
		sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); // standard output may be a pipe
	fds[STOPS] = (struct pollfd){.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN};
	if (fds[STOPS].fd < 0)
		podrun_die("wait for signals");
	prctl(PR_SET_NAME, PODRUN_COMM_UNIT_LOOP, 0, 0, 0);
	podrun_drop_program_pages();
	wait_until_needed(fds, n, wakers);
	for (int i = 0; i < wakers; i++)
		close(fds[FIRST_POD + n + i].fd);
	if (output.held && poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 1000) > 0)
		copy(&fds[OUTPUT]);
	signal(SIGPIPE, SIG_DFL);

	// A signal stays blocked, and so pending, until Go unblocks it: it would then end the CLI if no
	// handler is installed yet. So the loop consumes the signal and passes its name to the CLI.
	struct signalfd_siginfo info;
	const char *why = PODRUN_WOKEN_BY_GONE;
	if (fds[STOPS].revents && read(fds[STOPS].fd, &info, sizeof info) == sizeof info)
		why = info.ssi_signo == SIGTERM ? PODRUN_WOKEN_BY_TERM : info.ssi_signo == SIGHUP ? PODRUN_WOKEN_BY_HUP : PODRUN_WOKEN_BY_INT;
	unsetenv(PODRUN_ENV_ENTER);
	unsetenv(PODRUN_ENV_UNIT_LOOP);
	setenv(PODRUN_ENV_WOKEN_BY, why, 1);
	fcntl(cli, F_SETFD, FD_CLOEXEC);
	podrun_execute(cli, argv);
	podrun_die("wake podrun");
}
