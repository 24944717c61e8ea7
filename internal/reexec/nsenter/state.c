//go:build !podprogram

#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct podrun_kept podrun_kept[PODRUN_MAX_KEPT];
int podrun_kept_count;

static struct podrun_exit exits[PODRUN_MAX_EXITS];
static int exits_count;

static struct podrun_kept *find(const char *name) {
	for (int i = 0; i < podrun_kept_count; i++)
		if (!strcmp(podrun_kept[i].name, name))
			return &podrun_kept[i];
	return NULL;
}

int podrun_find_kept(const char *name) {
	struct podrun_kept *k = find(name);
	return k ? k->fd : -1;
}

static void drop(const char *name) {
	struct podrun_kept *k = find(name);
	if (!k)
		return;
	close(k->fd);
	*k = podrun_kept[--podrun_kept_count];
}

// keep stores a descriptor. For a listening socket it calls listen again in this process, so that
// clients see the pod init as the peer (SO_PEERCRED); its lifetime is the pod's.
static void keep(const char *name, int fd, int watched) {
	int listens = 0;
	socklen_t size = sizeof listens;
	drop(name);
	if (podrun_kept_count == PODRUN_MAX_KEPT || strlen(name) > PODRUN_MAX_KEPT_NAME) {
		close(fd);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
		listen(fd, SOMAXCONN);
	struct podrun_kept *k = &podrun_kept[podrun_kept_count++];
	strcpy(k->name, name);
	k->fd = fd;
	k->watched = watched;
}

static void forget(int pid, unsigned long long start) {
	for (int i = 0; i < exits_count; i++)
		if (exits[i].process.pid == pid && exits[i].process.start == start) {
			memmove(&exits[i], &exits[i + 1], (--exits_count - i) * sizeof *exits);
			return;
		}
}

// handle_state_message handles messages about descriptors and exits. It returns 0 for any other.
static int handle_state_message(const char *words, int fd) {
	char name[PODRUN_MAX_MESSAGE];
	int pid;
	unsigned long long start;
	if (fd >= 0 && sscanf(words, PODRUN_MSG_KEEP " %159s", name) == 1)
		keep(name, fd, 0);
	else if (fd >= 0 && sscanf(words, PODRUN_MSG_WATCH " %159s", name) == 1)
		keep(name, fd, 1);
	else if (fd >= 0)
		close(fd);
	else if (sscanf(words, PODRUN_MSG_DROP " %159s", name) == 1)
		drop(name);
	else if (sscanf(words, PODRUN_MSG_FORGET " %d %llu", &pid, &start) == 2)
		forget(pid, start);
	else
		return 0;
	return 1;
}

int podrun_read_message(int channel, char words[PODRUN_MAX_MESSAGE]) {
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	for (;;) {
		struct iovec text = {words, PODRUN_MAX_MESSAGE - 1};
		struct msghdr m = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
		ssize_t n = recvmsg(channel, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		// A supervisor that was killed with unread data resets the connection, once. The messages
		// that it sent before are still there.
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		words[n] = 0;
		int fd = -1;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof fd);
		if (!handle_state_message(words, fd))
			return 1;
	}
}

int podrun_pass_kept_fds(void) {
	char *list = calloc(podrun_kept_count + 1, PODRUN_MAX_KEPT_NAME + 16), *at = list;
	if (!list)
		return -1;
	for (int i = 0; i < podrun_kept_count; i++) {
		fcntl(podrun_kept[i].fd, F_SETFD, 0);
		at += sprintf(at, "%s=%d ", podrun_kept[i].name, podrun_kept[i].fd);
	}
	return setenv(PODRUN_ENV_KEPT_FDS, list, 1);
}

int podrun_reap(struct podrun_exit *e) {
	siginfo_t info = {0};
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
		return 0;
	*e = (struct podrun_exit){.at = podrun_now()};
	char pid[16];
	snprintf(pid, sizeof pid, "%d", info.si_pid);
	podrun_read_stat(pid, &e->process);
	e->process.pid = info.si_pid;
	return waitpid(info.si_pid, &e->status, WNOHANG) == info.si_pid ? info.si_pid : 0;
}

void podrun_record_exit(const struct podrun_exit *e) {
	if (exits_count == PODRUN_MAX_EXITS)
		forget(exits[0].process.pid, exits[0].process.start);
	exits[exits_count++] = *e;
}

int podrun_exits_pending(void) {
	for (int i = 0; i < exits_count; i++)
		if (!exits[i].sent)
			return 1;
	return 0;
}

void podrun_send_exits(int channel) {
	char words[PODRUN_MAX_MESSAGE];
	for (int i = 0; i < exits_count; i++) {
		struct podrun_exit *e = &exits[i];
		if (e->sent)
			continue;
		const struct podrun_stat *p = &e->process;
		int n = snprintf(words, sizeof words, PODRUN_MSG_EXIT " %d %llu %d %lld %s", p->pid, p->start, e->status, e->at, p->comm);
		if (send(channel, words, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return; // the socket is full or closed
		e->sent = 1;
	}
}

void podrun_resend_exits(void) {
	for (int i = 0; i < exits_count; i++)
		exits[i].sent = 0;
}
