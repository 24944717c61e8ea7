//go:build !podprogram

// The pod init is the counterpart of Kubernetes' pause container: PID 1 of the pod's own PID
// namespace. It holds the pod's network, IPC and UTS namespaces and reaps its orphans. It never starts
// Go. When it dies the kernel kills everything in the namespace, so no sandbox stays half alive; the
// monitor (monitor.c) starts another pod init.
//
// The pod init outlives supervisors. It holds what must not end with one (state.c). When a
// supervisor dies, the pod init starts the next one, which resumes from that state. While a
// supervisor hibernates, the pod init waits for events in its place.
#define _GNU_SOURCE
#include "init.h"

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

#include "base.h"
#include "probe.h"
#include "state.h"

enum { SIGNALS, ALARM, CHANNEL, KEPT };

// While a supervisor runs, its messages come in groups: the pages of the program are dropped after a pause of so
// many milliseconds.
enum { settle = 20 };

static const struct podrun_pod *pod;

static struct {
	pid_t pid;        // 0: none
	int channel;      // the socket to it; -1: it has closed its end
	int serving;      // a supervisor has served
	int over;         // the pod has ended: the pod init ends with the supervisor
	int code;         // with this exit code
	int stopping;     // a stop was requested and is not recorded yet
	int hibernates;   // it has announced a hibernation
	long long resume_at; // then: when to start the next one, CLOCK_BOOTTIME; 0: never
	int ping;         // then: interval in milliseconds for the descriptor PODRUN_KEPT_NOTIFY; 0: never
	int probes;       // then: number of probers that must run
	struct podrun_restarts restarts;
	long long started_at;
} supervisor = {.channel = -1, .restarts.max = 60000000000};

// exit_pod ends the pod.
static void exit_pod(int code) {
	if (pod->hostpid) // the kernel does not end the pod with this process
		podrun_kill_descendants();
	_exit(code);
}

static int exit_code(int st) { return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st); }

// set_alarm makes PODRUN_FD_ALARM readable from a CLOCK_BOOTTIME on; 0 disarms it.
static void set_alarm(long long nanoseconds) {
	struct itimerspec at = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
	timerfd_settime(PODRUN_FD_ALARM, TFD_TIMER_ABSTIME, &at, NULL);
}

static void send_word(int fd, const char *word) { send(fd, word, strlen(word), MSG_DONTWAIT | MSG_NOSIGNAL); }

// send_watchdog reports to the main process of the pod's systemd unit, if there is one, that the pod is
// alive.
static void send_watchdog(void) { send_word(podrun_find_kept(PODRUN_KEPT_NOTIFY), PODRUN_NOTIFY_WATCHDOG); }

// record_serving adds to the pod's lock that the control socket exists. Later its absence means that the runtime
// directory is lost.
static void record_serving(void) {
	if (lseek(PODRUN_FD_LOCK, 0, SEEK_END) < 0 || write(PODRUN_FD_LOCK, PODRUN_LOCK_SERVING "\n", strlen(PODRUN_LOCK_SERVING) + 1) < 0)
		dprintf(2, "podrun: write the pod's lock: %s\n", strerror(errno));
}

static void handle_message(const char *words) {
	if (!strcmp(words, PODRUN_MSG_SERVING)) {
		eventfd_write(PODRUN_FD_SERVED, 1);
		if (!supervisor.serving) {
			close(PODRUN_FD_REPORT); // the caller that starts the pod is notified after the monitor, not before
			record_serving();
		}
		supervisor.serving = 1;
	} else if (!strcmp(words, PODRUN_MSG_STOP_RECORDED))
		supervisor.stopping = 0;
	else if (sscanf(words, PODRUN_MSG_FINISHED " %d", &supervisor.code) == 1)
		supervisor.over = 1;
	else if (sscanf(words, PODRUN_MSG_HIBERNATE " %lld %d %d", &supervisor.resume_at, &supervisor.ping, &supervisor.probes) == 3)
		supervisor.hibernates = 1;
}

// read_supervisor reads every message that waits in the supervisor's socket.
static void read_supervisor(void) {
	char words[PODRUN_MAX_MESSAGE];
	int n = 0;
	while (supervisor.channel >= 0 && (n = podrun_read_message(supervisor.channel, words)) > 0)
		handle_message(words);
	if (n < 0) {
		close(supervisor.channel);
		supervisor.channel = -1;
	}
}

static void start_supervisor(const char *after);

// log_and_respawn logs how the supervisor ended and starts another, after a delay if necessary.
static void log_and_respawn(const char *how, int what) {
	long long wait = podrun_restart_delay(&supervisor.restarts, supervisor.started_at);
	dprintf(2, "podrun: the supervisor %s %d; its containers keep running; restarting in %lld.%lld s\n", how, what,
		wait / 1000000000, wait / 100000000 % 10);
	if (wait)
		set_alarm(podrun_now() + wait);
	else
		start_supervisor(PODRUN_AFTER_DEATH);
}

// reap_supervisor handles the exit of the supervisor.
static void reap_supervisor(int st) {
	read_supervisor();
	if (supervisor.channel >= 0)
		close(supervisor.channel);
	supervisor.channel = -1;
	supervisor.pid = 0;
	if (supervisor.over)
		exit_pod(supervisor.code);
	if (!supervisor.serving || (WIFEXITED(st) && (WEXITSTATUS(st) == PODRUN_EXIT_UNRECOVERABLE || WEXITSTATUS(st) == PODRUN_EXIT_SANDBOX_LOST)))
		exit_pod(exit_code(st));
	if (WIFSIGNALED(st) && podrun_is_stop(WTERMSIG(st)))
		supervisor.stopping = 1; // the signal was meant for a supervisor that handles it
	podrun_resend_exits();
	if (supervisor.hibernates) {
		supervisor.restarts.quick = 0;
		set_alarm(supervisor.resume_at);
		if (supervisor.ping > 0)
			send_watchdog();
		if (podrun_start_probers(supervisor.probes) < 0)
			start_supervisor(PODRUN_AFTER_HIBERNATION);
	} else if (WIFSIGNALED(st)) {
		log_and_respawn("was killed by signal", WTERMSIG(st));
	} else {
		log_and_respawn("has ended with code", WEXITSTATUS(st));
	}
}

// start_supervisor starts a supervisor that resumes from the state of an earlier one.
static void start_supervisor(const char *after) {
	int pair[2];
	set_alarm(0);
	podrun_stop_probers();
	supervisor.hibernates = 0;
	supervisor.started_at = podrun_now();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		log_and_respawn("has no socket, errno", errno);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		if (podrun_pass_kept_fds() == 0 && setenv(PODRUN_ENV_AFTER, after, 1) == 0)
			podrun_execute_supervisor(pod, pair[1]);
		dprintf(2, "podrun: start a supervisor: %s\n", strerror(errno));
		_exit(1); // the pod init tries again
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		log_and_respawn("cannot be started, errno", errno);
		return;
	}
	supervisor.pid = pid;
	supervisor.channel = pair[0];
	if (supervisor.stopping)
		send_word(supervisor.channel, PODRUN_MSG_STOP);
}

// poll_in_chunks replaces poll for more descriptors than RLIMIT_NOFILE allows by now: poll fails
// with EINVAL then. It polls them in groups, ten times a second.
static int poll_in_chunks(struct pollfd *fds, int n, int timeout) {
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

// wait_event waits for an event and returns a bit for each of SIGNALS, ALARM, CHANNEL and KEPT;
// KEPT means that a watched descriptor of a hibernating supervisor has input.
static int wait_event(void) {
	static struct pollfd fds[KEPT + PODRUN_MAX_KEPT];
	int n = KEPT, hibernating = supervisor.pid == 0 && supervisor.hibernates;
	fds[SIGNALS] = (struct pollfd){.fd = PODRUN_FD_SIGNALS, .events = POLLIN};
	fds[ALARM] = (struct pollfd){.fd = PODRUN_FD_ALARM, .events = POLLIN};
	fds[CHANNEL] = (struct pollfd){.fd = supervisor.channel, .events = POLLIN | (podrun_exits_pending() ? POLLOUT : 0)};
	for (int i = 0; hibernating && i < podrun_kept_count; i++)
		if (podrun_kept[i].watched)
			fds[n++] = (struct pollfd){.fd = podrun_kept[i].fd, .events = POLLIN};
	int timeout = hibernating && supervisor.ping > 0 ? supervisor.ping : -1;
	int ready = hibernating ? 0 : poll(fds, n, settle);
	if (ready == 0) {
		podrun_drop_program_pages();
		ready = poll(fds, n, timeout);
	}
	if (ready < 0 && errno == EINVAL)
		ready = poll_in_chunks(fds, n, timeout);
	if (ready == 0)
		send_watchdog();
	int found = 0;
	for (int i = 0; ready > 0 && i < n; i++)
		if (fds[i].revents)
			found |= 1 << (i < KEPT ? i : KEPT);
	return found;
}

void podrun_execute_supervisor(const struct podrun_pod *p, int channel) {
	dup2(channel, PODRUN_FD_CHANNEL); // replaces the lock, which only the monitor and the pod init hold
	close(channel);
	signal(SIGTERM, SIG_DFL); // they stop the pod, even if the process that started it ignores them
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	sigprocmask(SIG_SETMASK, &p->old_mask, NULL);
	podrun_clear_env();
	podrun_execute(p->program, p->argv);
}

void podrun_init_loop(const struct podrun_pod *of, pid_t pid, int channel) {
	pod = of;
	supervisor.pid = pid;
	supervisor.channel = channel;
	supervisor.started_at = podrun_now();
	if ((supervisor.stopping = pod->stop_asked))
		send_word(channel, PODRUN_MSG_STOP);
	for (;;) {
		int found = wait_event(), asked = 0;
		struct signalfd_siginfo s;
		while (read(PODRUN_FD_SIGNALS, &s, sizeof s) == sizeof s) {
			asked |= podrun_is_stop(s.ssi_signo);
			if (s.ssi_signo == SIGUSR1 && supervisor.pid) // the supervisor does not answer
				kill(supervisor.pid, SIGKILL);
		}
		if (asked && supervisor.channel >= 0)
			send_word(supervisor.channel, PODRUN_MSG_STOP);
		supervisor.stopping |= asked;
		read_supervisor();
		for (struct podrun_exit e; podrun_reap(&e) > 0;)
			if (e.process.pid == supervisor.pid)
				reap_supervisor(e.status);
			else if (!podrun_forget_prober(e.process.pid))
				podrun_record_exit(&e);
		int wanted = supervisor.hibernates && (found & 1 << KEPT || podrun_exits_pending() || supervisor.stopping ||
						       podrun_count_probers() < supervisor.probes);
		if (supervisor.pid == 0 && (wanted || asked || found & 1 << ALARM))
			start_supervisor(supervisor.hibernates ? PODRUN_AFTER_HIBERNATION : PODRUN_AFTER_DEATH);
		if (supervisor.channel >= 0)
			podrun_send_exits(supervisor.channel);
	}
}
