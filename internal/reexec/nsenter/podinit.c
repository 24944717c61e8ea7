// The keeper is the pod's pause-equivalent: PID 1 of the pod's own PID namespace, holder
// of its network, IPC and UTS namespaces, reaper of its orphans. It never starts Go.
// When it dies the kernel kills everything in the namespace, so a sandbox is never left
// half alive; the guard (guard.c) begins another keeper.
//
// It outlives supervisors. What must not end with one it holds (kept.c); when one has
// died it begins the next, which finds everything as it was; and while one dozes it
// waits in its place for something to happen.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "enter.h"
#include "keeper.h"

enum { SIGNALS, ALARM, CHANNEL, WATCHED };

// A supervisor that dies in a loop must not spin: after some quick deaths each next one
// waits for twice as long.
static const long long quick = 10000000000, first_delay = 100000000, last_delay = 60000000000;
enum { free_deaths = 5 };

static char **arguments;
static sigset_t mask; // the signal mask of whoever started the pod

static struct {
	pid_t pid;        // 0: there is none
	int channel;      // to it; -1: it has closed its end
	int serving;      // one has served
	int over;         // the pod has ended: with the supervisor ends the keeper
	int code;         // with this exit code
	int stopping;     // a stop was asked for that is not on record
	int dozes;        // it has said so
	long long wake;   // then: when to wake, CLOCK_BOOTTIME; 0: never
	int ping;         // then: tell the descriptor "front" every so many milliseconds; 0: never
	unsigned deaths;  // quick ones, in a row
	long long born;
} supervisor = {.channel = -1};

static int hostpid; // the kernel does not end the pod with this process

// leave ends the pod.
static void leave(int code) {
	if (hostpid)
		podrun_end_descendants();
	_exit(code);
}

static int exit_code(int st) { return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st); }

static int is_stop(int sig) { return sig == SIGTERM || sig == SIGINT || sig == SIGHUP; }

// alarm_at makes PODRUN_ALARM_FD readable from a CLOCK_BOOTTIME on; never for 0.
static void alarm_at(long long nanoseconds) {
	struct itimerspec at = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
	timerfd_settime(PODRUN_ALARM_FD, TFD_TIMER_ABSTIME, &at, NULL);
}

// still_here tells who serves systemd, if anybody does, that the pod lives.
static void still_here(void) { send(podrun_find_kept("front"), "WATCHDOG=1", 10, MSG_DONTWAIT | MSG_NOSIGNAL); }

static void hear(const char *words) {
	if (!strcmp(words, "serving")) {
		eventfd_write(PODRUN_SERVED_FD, 1);
		if (!supervisor.serving)
			close(PODRUN_REPORT_FD); // whoever starts the pod is told when the guard knows, not before
		supervisor.serving = 1;
	} else if (!strcmp(words, "stopping"))
		supervisor.stopping = 0;
	else if (sscanf(words, "over %d", &supervisor.code) == 1)
		supervisor.over = 1;
	else if (sscanf(words, "doze %lld %d", &supervisor.wake, &supervisor.ping) == 2)
		supervisor.dozes = 1;
}

// listen_to takes every message that waits in the supervisor's socket.
static void listen_to_supervisor(void) {
	char words[PODRUN_WORDS_MAX];
	int n = 0;
	while (supervisor.channel >= 0 && (n = podrun_receive(supervisor.channel, words)) > 0)
		hear(words);
	if (n < 0) {
		close(supervisor.channel);
		supervisor.channel = -1;
	}
}

// delay is how long the next supervisor has to wait after one has died.
static long long delay(void) {
	if (podrun_now() - supervisor.born > quick)
		supervisor.deaths = 0;
	if (++supervisor.deaths <= free_deaths)
		return 0;
	unsigned doublings = supervisor.deaths - free_deaths - 1;
	return doublings < 10 && first_delay << doublings < last_delay ? first_delay << doublings : last_delay;
}

static void begin(const char *after);

// mourn says what has become of the pod's supervisor, and begins another in time.
static void mourn(const char *how, int what) {
	long long wait = delay();
	dprintf(2, "podrun: the supervisor %s %d; its containers run on, and another begins in %lld.%lld s\n", how, what,
		wait / 1000000000, wait / 100000000 % 10);
	if (wait)
		alarm_at(podrun_now() + wait);
	else
		begin("death");
}

// bury sees the supervisor end.
static void bury(int st) {
	listen_to_supervisor();
	if (supervisor.channel >= 0)
		close(supervisor.channel);
	supervisor.channel = -1;
	supervisor.pid = 0;
	if (supervisor.over)
		leave(supervisor.code);
	if (!supervisor.serving || (WIFEXITED(st) && WEXITSTATUS(st) == PODRUN_HOPELESS))
		leave(exit_code(st));
	if (WIFSIGNALED(st) && is_stop(WTERMSIG(st)))
		supervisor.stopping = 1; // it was meant for one that listens
	podrun_tell_again();
	if (supervisor.dozes) {
		supervisor.deaths = 0;
		alarm_at(supervisor.wake);
		if (supervisor.ping > 0)
			still_here();
	} else if (WIFSIGNALED(st)) {
		mourn("was killed by signal", WTERMSIG(st));
	} else {
		mourn("has ended with code", WEXITSTATUS(st));
	}
}

// begin starts a supervisor that takes up what another has left.
static void begin(const char *after) {
	int pair[2];
	alarm_at(0);
	supervisor.dozes = 0;
	supervisor.born = podrun_now();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		mourn("cannot be spoken to, errno", errno);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		podrun_become_supervisor(pair[1], &mask);
		podrun_forget_environment();
		if (podrun_hand_down() == 0 && setenv("_PODRUN_AFTER", after, 1) == 0)
			execv("/proc/self/exe", arguments);
		dprintf(2, "podrun: begin a supervisor: %s\n", strerror(errno));
		_exit(1); // it is tried again
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		mourn("cannot be started, errno", errno);
		return;
	}
	supervisor.pid = pid;
	supervisor.channel = pair[0];
	if (supervisor.stopping)
		send(supervisor.channel, "stop", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// poll_in_turns is poll for more descriptors than this process may open by now, of which
// poll wants to hear nothing: it looks at a few after the other, ten times a second.
static int poll_in_turns(struct pollfd *fds, int n, int timeout) {
	struct rlimit limit;
	int each = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)n ? (int)limit.rlim_cur : n;
	for (int waited = 0;; waited += 100) {
		int ready = 0, some = each > 0 ? 0 : -1;
		for (int at = 0; at < n && some >= 0; at += each) {
			some = poll(fds + at, n - at < each ? n - at : each, 0);
			ready += some;
		}
		if (some >= 0 && (ready > 0 || (timeout >= 0 && waited >= timeout)))
			return ready;
		poll(NULL, 0, 100);
		if (some < 0)
			return some;
	}
}

// watch waits until something has happened and says what: as poll does, for SIGNALS,
// ALARM and CHANNEL; CHANNEL too where a dozing supervisor's descriptor has an input.
static int watch(void) {
	static struct pollfd fds[WATCHED + PODRUN_KEPT_MAX];
	int n = WATCHED, dozing = supervisor.pid == 0 && supervisor.dozes;
	fds[SIGNALS] = (struct pollfd){.fd = PODRUN_SIGNALS_FD, .events = POLLIN};
	fds[ALARM] = (struct pollfd){.fd = PODRUN_ALARM_FD, .events = POLLIN};
	fds[CHANNEL] = (struct pollfd){.fd = supervisor.channel, .events = POLLIN | (podrun_untold() ? POLLOUT : 0)};
	for (int i = 0; dozing && i < podrun_kept_count; i++)
		if (podrun_kept[i].watched)
			fds[n++] = (struct pollfd){.fd = podrun_kept[i].fd, .events = POLLIN};
	if (dozing)
		podrun_forget_program();
	int timeout = dozing && supervisor.ping > 0 ? supervisor.ping : -1;
	int ready = poll(fds, n, timeout);
	if (ready < 0 && errno == EINVAL)
		ready = poll_in_turns(fds, n, timeout);
	if (ready == 0)
		still_here();
	int found = 0;
	for (int i = 0; ready > 0 && i < n; i++)
		if (fds[i].revents)
			found |= 1 << (i < WATCHED ? i : WATCHED);
	return found;
}

void podrun_keep(const struct podrun_birth *birth, pid_t pid, int channel) {
	arguments = birth->argv;
	mask = birth->before;
	hostpid = birth->hostpid;
	supervisor.pid = pid;
	supervisor.channel = channel;
	supervisor.born = podrun_now();
	if ((supervisor.stopping = birth->asked))
		send(channel, "stop", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (;;) {
		int found = watch(), st, asked = 0;
		struct signalfd_siginfo s;
		while (read(PODRUN_SIGNALS_FD, &s, sizeof s) == sizeof s) {
			asked |= is_stop(s.ssi_signo);
			if (s.ssi_signo == SIGUSR1 && supervisor.pid) // it does not answer
				kill(supervisor.pid, SIGKILL);
		}
		if (asked && supervisor.channel >= 0)
			send(supervisor.channel, "stop", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
		supervisor.stopping |= asked;
		listen_to_supervisor();
		for (pid_t pid; (pid = podrun_reap(supervisor.pid, &st)) > 0;)
			if (pid == supervisor.pid)
				bury(st);
		int wanted = supervisor.dozes && (found & 1 << WATCHED || podrun_untold() || supervisor.stopping);
		if (supervisor.pid == 0 && (wanted || asked || found & 1 << ALARM))
			begin(supervisor.dozes ? "doze" : "death");
		if (supervisor.channel >= 0)
			podrun_tell(supervisor.channel);
	}
}
