//go:build !podprogram

// Probers. While a supervisor hibernates, the pod init has one prober for each steady probe: a probe
// whose next success changes nothing. A prober runs its probe at its times, as the supervisor would,
// and exits at the first result that is not a plain success. The pod init then starts a supervisor,
// which repeats the probe and counts from there.
//
// The supervisor has made everything that needs a decision: the configuration for the exec shim, or
// an address and a request. A prober judges only whether a result is a success. The table of probes
// is shared memory, in which a prober records its latest success for the next supervisor. It counts its successes in a
// file that it shares with supervisors.
#define _GNU_SOURCE
#include "probe.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "state.h"

// A probe is a record of the table (internal/podinit/probe.go). Its text follows: the configuration
// for the exec shim, or a request, or nothing. For a command strings follow, each with its NUL: the
// name of the kept pidfd, the cgroup or "", the arguments, the environment.
struct probe {
	long long next, last;      // CLOCK_BOOTTIME of the next run, and of the start of the latest success, or 0
	long long period, timeout; // in nanoseconds, as the others
	unsigned size;             // of the record, a multiple of 8
	unsigned family;           // of the address; 0: a command
	unsigned netns;            // connect from the pod's network, not the host's
	unsigned port;
	unsigned text_size; // bytes of the text
	unsigned args, env; // numbers of strings
	unsigned counter;   // number of the counter of its successes in the file PODRUN_KEPT_COUNTERS
	unsigned char address[16];
};

enum { NULL_FD = PODRUN_FD_SHIM_CHANNEL + 1, SHIM_FD, OWN_FDS }; // descriptors of a prober, after the descriptors of the exec shim
enum { MAX_HEAD = 4096, MAX_BODY = 10 << 10 }; // bytes of an answer, the latter as in runner/probe

static pid_t probers[PODRUN_MAX_PROBES];

// strings are the strings of a command's record.
struct strings {
	char *target, *cgroup, **argv, **env;
};

static struct {
	int channel;          // to the exec shim; -1: none
	pid_t maker, command; // the exec shim and the process that it has made; 0: none
	struct strings what;
} run = {.channel = -1};

// end_command kills the command and what may still make it.
static void end_command(void) {
	int reply[2];
	if (run.maker > 0) {
		kill(run.maker, SIGKILL);
		waitpid(run.maker, NULL, 0);
	}
	while (run.channel >= 0 && recv(run.channel, reply, sizeof reply, MSG_DONTWAIT) == sizeof reply)
		if (reply[0] == PODRUN_SHIM_STARTED)
			run.command = reply[1];
	if (run.command > 0) {
		kill(-run.command, SIGKILL); // it leads a process group, or is about to
		kill(run.command, SIGKILL);
	}
}

static void stop(int sig) {
	(void)sig;
	end_command();
	_exit(0);
}

// await waits until a descriptor has events, and returns 0 if it has none at a CLOCK_BOOTTIME. Only
// here can SIGTERM arrive.
static int await(int fd, short events, long long until) {
	sigset_t open;
	sigprocmask(SIG_SETMASK, NULL, &open);
	sigdelset(&open, SIGTERM);
	for (;;) {
		long long left = until - podrun_now();
		if (left < 0)
			left = 0;
		struct timespec timeout = {left / 1000000000, left % 1000000000};
		struct pollfd at = {.fd = fd, .events = events};
		int ready = ppoll(&at, 1, &timeout, &open);
		if (ready > 0)
			return 1;
		if (left == 0 || (ready < 0 && errno != EINTR))
			return 0;
	}
}

// judge_answer returns 1 for an answer with a status of success that is complete or long enough, 0 if
// more of it must come, and -1 for any other. The text ends with a NUL after n bytes.
static int judge_answer(const char *text, size_t n, int ended) {
	static const char form[] = "HTTP/1.# 2## ", length[] = "\r\ncontent-length:";
	for (size_t i = 0; i < n && i < sizeof form - 1; i++)
		if (form[i] == '#' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
			return -1;
	const char *end = memmem(text, n, "\r\n\r\n", 4), *at = strcasestr(text, length);
	if (!end)
		return ended || n >= MAX_HEAD ? -1 : 0;
	if (memchr(text, 0, end - text))
		return -1;
	size_t body = n - (end + 4 - text), want = MAX_BODY;
	int known = at && at < end;
	if (known) {
		for (at += sizeof length - 1; *at == ' '; at++)
			;
		if (!isdigit((unsigned char)*at))
			return -1;
		unsigned long long bytes = strtoull(at, NULL, 10);
		want = bytes < MAX_BODY ? bytes : MAX_BODY;
	}
	if (body >= want || !memcmp(text + 9, "204", 3))
		return 1;
	return ended ? (known ? -1 : 1) : 0;
}

// request_succeeds sends a probe's request and reports whether the answer is a success.
static int request_succeeds(int fd, const struct probe *p, long long deadline) {
	static char text[MAX_HEAD + MAX_BODY + 1];
	size_t n = 0;
	int ended = 0, verdict = 0;
	if (send(fd, p + 1, p->text_size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)p->text_size)
		return 0;
	while (verdict == 0 && await(fd, POLLIN, deadline)) {
		ssize_t got = recv(fd, text + n, sizeof text - 1 - n, MSG_DONTWAIT);
		if (got < 0)
			return 0;
		ended = got == 0;
		text[n += got] = 0;
		verdict = judge_answer(text, n, ended);
	}
	return verdict > 0;
}

// probe_server connects as internal/nsthread does, so that no closed connection stays in TIME_WAIT.
static int probe_server(const struct probe *p, long long deadline) {
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(p->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(p->port)};
	memcpy(&in.sin_addr, p->address, sizeof in.sin_addr);
	memcpy(&in6.sin6_addr, p->address, sizeof in6.sin6_addr);
	const struct sockaddr *to = p->family == AF_INET ? (void *)&in : (void *)&in6;
	int fd = socket(p->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 1}, sizeof(struct linger));
	int ok = connect(fd, to, p->family == AF_INET ? sizeof in : sizeof in6) == 0 ||
		 (errno == EINPROGRESS && await(fd, POLLOUT, deadline) &&
		  getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &(socklen_t){sizeof err}) == 0 && err == 0);
	ok = ok && (p->text_size == 0 || request_succeeds(fd, p, deadline));
	close(fd);
	return ok;
}

// start_shim starts the exec shim, in the container's cgroup, and returns its pid or -1.
static pid_t start_shim(int channel) {
	int cgroup = *run.what.cgroup ? open(run.what.cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct clone_args how = {.exit_signal = SIGCHLD, .flags = cgroup >= 0 ? CLONE_INTO_CGROUP : 0, .cgroup = cgroup};
	if (*run.what.cgroup && cgroup < 0)
		return -1;
	pid_t pid = *run.what.cgroup ? syscall(SYS_clone3, &how, sizeof how) : fork();
	if (pid == 0) {
		for (int fd = 0; fd < 3; fd++)
			dup2(NULL_FD, fd);
		dup2(channel, PODRUN_FD_SHIM_CHANNEL);
		syscall(SYS_execveat, SHIM_FD, "", run.what.argv, run.what.env, AT_EMPTY_PATH);
		_exit(126);
	}
	if (cgroup >= 0)
		close(cgroup);
	return pid;
}

// await_exec reads the exec shim's replies until the command's program is executed, and returns 0 if it is not.
static int await_exec(long long deadline) {
	int reply[2];
	ssize_t n = -1;
	while (await(run.channel, POLLIN, deadline) && (n = recv(run.channel, reply, sizeof reply, MSG_DONTWAIT)) != 0) {
		if (n != sizeof reply || reply[0] != PODRUN_SHIM_STARTED || run.command)
			return 0;
		run.command = reply[1];
	}
	if (n != 0 || run.command <= 0 || waitpid(run.maker, NULL, 0) != run.maker)
		return 0;
	run.maker = 0;
	return 1;
}

// exited_well waits for the command and reports whether it has exited with 0.
static int exited_well(long long deadline) {
	int pidfd = syscall(SYS_pidfd_open, run.command, 0), st;
	if (pidfd < 0)
		return 0;
	int ended = await(pidfd, POLLIN, deadline) && waitpid(run.command, &st, 0) == run.command;
	close(pidfd);
	if (!ended)
		return 0;
	run.command = 0;
	return WIFEXITED(st) && WEXITSTATUS(st) == 0;
}

// probe_command makes a command as internal/execshim does. Nothing reads its output: if it fails, the
// supervisor runs it again.
static int probe_command(const struct probe *p, long long deadline) {
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	run.channel = pair[0];
	run.maker = start_shim(pair[1]);
	close(pair[1]);
	int ok = run.maker > 0 && send(run.channel, p + 1, p->text_size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)p->text_size &&
		 await_exec(deadline) && exited_well(deadline);
	if (!ok)
		end_command();
	close(run.channel);
	run.channel = -1;
	return ok;
}

// find_probe returns the record with a number, or NULL if it is not in the table completely.
static struct probe *find_probe(char *table, size_t size, int number) {
	for (struct probe *p; size >= sizeof *p; table += p->size, size -= p->size) {
		p = (struct probe *)table;
		if (p->size < sizeof *p || p->size % 8 || p->size > size || p->text_size > p->size - sizeof *p)
			return NULL;
		if (number-- == 0)
			return p;
	}
	return NULL;
}

// next_string returns the string at *at and moves *at after it, or returns NULL if none ends before end.
static char *next_string(char **at, char *end) {
	char *s = *at, *nul = memchr(s, 0, end - s);
	*at = nul ? nul + 1 : end;
	return nul ? s : NULL;
}

// read_list returns an array of the next count strings, or NULL.
static char **read_list(unsigned count, char **at, char *end) {
	char **list = count <= (size_t)(end - *at) ? calloc(count + 1UL, sizeof *list) : NULL;
	int complete = 1;
	for (unsigned i = 0; list && i < count; i++)
		complete &= (list[i] = next_string(at, end)) != NULL;
	if (!complete) {
		free(list);
		return NULL;
	}
	return list;
}

// read_strings reads the strings of a command's record, and returns 0 if they are not in it completely.
static int read_strings(struct probe *p, struct strings *s) {
	char *at = (char *)(p + 1) + p->text_size, *end = (char *)p + p->size;
	s->target = next_string(&at, end);
	s->cgroup = next_string(&at, end);
	s->argv = read_list(p->args, &at, end);
	s->env = read_list(p->env, &at, end);
	return s->target && s->cgroup && s->argv && s->env;
}

// dup_kept duplicates a kept descriptor to OWN_FDS or above. The prober then moves it to its own number.
static int dup_kept(const char *name) { return fcntl(podrun_find_kept(name), F_DUPFD_CLOEXEC, OWN_FDS); }

// prepare_command reads the strings of a command, and places the descriptors.
static int prepare_command(struct probe *p) {
	if (!read_strings(p, &run.what))
		return 0;
	int target = dup_kept(run.what.target), shim = dup_kept(PODRUN_KEPT_SHIM), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return dup2(target, PODRUN_FD_SHIM_TARGET) >= 0 && dup3(shim, SHIM_FD, O_CLOEXEC) >= 0 && dup3(null, NULL_FD, O_CLOEXEC) >= 0 &&
	       dup2(NULL_FD, PODRUN_FD_SHIM_CHANNEL) >= 0; // so that no other descriptor gets that number
}

// prepare_connections enters the network from which a prober connects, and then drops all privileges, because
// the prober reads what servers send.
static int prepare_connections(const struct probe *p) {
	if (p->netns && setns(PODRUN_FD_NET, CLONE_NEWNET) < 0)
		return 0;
	podrun_drop_privileges();
	return p->family == AF_INET || p->family == AF_INET6;
}

// map_kept maps a kept file and sets its size, or returns NULL.
static void *map_kept(const char *name, size_t *size) {
	struct stat st;
	int fd = podrun_find_kept(name);
	if (fstat(fd, &st) < 0)
		return NULL;
	*size = st.st_size;
	void *mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return mapped == MAP_FAILED ? NULL : mapped;
}

// map_counter returns the counter of a probe's successes. Without the file it is one that nothing reads.
static unsigned long long *map_counter(const struct probe *p) {
	static unsigned long long unread;
	size_t size = 0;
	unsigned long long *all = map_kept(PODRUN_KEPT_COUNTERS, &size);
	return all && p->counter < size / sizeof *all ? all + p->counter : &unread;
}

// run_prober is the main function of a prober.
static __attribute__((noreturn)) void run_prober(int number) {
	struct sigaction action = {.sa_handler = stop};
	size_t size = 0;
	prctl(PR_SET_NAME, PODRUN_COMM_PROBER, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); // in the host's PID namespace the kernel would not end it with the pod init
	sigaction(SIGTERM, &action, NULL);
	char *table = map_kept(PODRUN_KEPT_PROBES, &size);
	struct probe *p = table ? find_probe(table, size, number) : NULL;
	unsigned long long *successes = p ? map_counter(p) : NULL;
	if (!p || !(p->family ? prepare_connections(p) : prepare_command(p)))
		_exit(1);
	podrun_close_from(p->family ? 3 : OWN_FDS);
	for (;;) {
		podrun_drop_program_pages();
		await(-1, 0, p->next);
		long long started = podrun_now(), deadline = started + p->timeout;
		if (!(p->family ? probe_server(p, deadline) : probe_command(p, deadline)))
			_exit(1);
		++*successes;
		p->last = started;
		p->next = started + p->period;
	}
}

int podrun_start_probers(int count) {
	if (count > PODRUN_MAX_PROBES)
		return -1;
	for (int i = 0; i < count; i++) {
		if ((probers[i] = fork()) == 0)
			run_prober(i);
		if (probers[i] < 0)
			return -1;
	}
	return 0;
}

void podrun_stop_probers(void) {
	for (int i = 0; i < PODRUN_MAX_PROBES; i++) {
		if (probers[i] > 0)
			kill(probers[i], SIGTERM);
		probers[i] = 0; // from now on it is reaped like an orphan
	}
}

int podrun_forget_prober(pid_t pid) {
	for (int i = 0; i < PODRUN_MAX_PROBES; i++)
		if (probers[i] == pid) {
			probers[i] = 0;
			return 1;
		}
	return 0;
}

int podrun_count_probers(void) {
	int n = 0;
	for (int i = 0; i < PODRUN_MAX_PROBES; i++)
		n += probers[i] > 0;
	return n;
}
