#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int report_fd = 2; // descriptor for fatal errors
static int fatal = 125;   // exit code after a fatal error

void podrun_report_to(int fd) { report_fd = fd; }

int podrun_report_fd(void) { return report_fd; }

void podrun_set_exit_code(int code) { fatal = code; }

void podrun_die(const char *what) {
	dprintf(report_fd, "%s: %s\n", what, strerror(errno));
	_exit(fatal);
}

void podrun_die_text(const char *text) {
	dprintf(report_fd, "%s\n", text);
	_exit(fatal);
}

const char *podrun_env(const char *name) {
	const char *v = getenv(name);
	return v ? v : "";
}

int podrun_env_fd(const char *name) {
	const char *v = podrun_env(name);
	return *v ? atoi(v) : -1;
}

void podrun_clear_env(void) {
	static const char *names[] = {
		PODRUN_ENV_ENTER, PODRUN_ENV_UID_MAP, PODRUN_ENV_GID_MAP, PODRUN_ENV_ID_TOOLS, PODRUN_ENV_HOSTNAME,
		PODRUN_ENV_USER_NS, PODRUN_ENV_ROUTER, PODRUN_ENV_OWN_USER_NS, PODRUN_ENV_HOST_PID, PODRUN_ENV_SUPERVISOR,
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
}

void podrun_write_file(const char *path, const char *text, const char *what) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		podrun_die(what);
	close(fd);
}

void podrun_execute(int program, char **argv) { syscall(SYS_execveat, program, "", argv, environ, AT_EMPTY_PATH); }

void podrun_close_from(unsigned first) {
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
	for (int fd = first; fd < 1024; fd++) // before Linux 5.9
		close(fd);
}

int podrun_move_fd_up(int fd) {
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, PODRUN_MOVED_FDS);
	if (fd < 0 || moved < 0)
		podrun_die("make a descriptor");
	close(fd);
	return moved;
}

void podrun_place_fd(int fd, int where) {
	fd = podrun_move_fd_up(fd);
	if (dup3(fd, where, O_CLOEXEC) < 0)
		podrun_die("hold a descriptor");
	close(fd);
}

void podrun_block_signals(sigset_t *set, sigset_t *before) {
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigprocmask(SIG_BLOCK, set, before);
}

int podrun_is_stop(int sig) { return sig == SIGTERM || sig == SIGINT || sig == SIGHUP; }

// drop_segment drops the read-only pages of the program; they come back from the page cache when
// they are needed.
static int drop_segment(struct dl_phdr_info *info, size_t size, void *unused) {
	unsigned long page = sysconf(_SC_PAGESIZE);
	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		unsigned long start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		unsigned long end = info->dlpi_addr + p->p_vaddr + p->p_filesz;
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 1; // a static program has no other object
}

void podrun_drop_program_pages(void) { dl_iterate_phdr(drop_segment, NULL); }

void podrun_drop_privileges(void) {
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		podrun_die("give up rights");
}

// internal/procfs has this parser in Go.
static int parse_stat(char *text, struct podrun_stat *st) {
	char *name = strchr(text, '('), *rest = strrchr(text, ')'); // a program can choose any name
	memset(st, 0, sizeof *st);
	if (!name || !rest)
		return 0;
	*rest++ = 0;
	snprintf(st->comm, sizeof st->comm, "%s", name + 1);
	return sscanf(text, "%d", &st->pid) == 1 &&
	       sscanf(rest, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &st->ppid, &st->start) == 2;
}

int podrun_read_stat(const char *pid, struct podrun_stat *st) {
	char path[32], text[512];
	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return parse_stat(text, st);
}

long long podrun_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

long long podrun_restart_delay(struct podrun_restarts *r, long long started) {
	static const long long quick = 10000000000, min = 100000000;
	enum { without_delay = 5 };
	if (podrun_now() - started > quick)
		r->quick = 0;
	if (++r->quick <= without_delay)
		return 0;
	unsigned doublings = r->quick - without_delay - 1;
	return doublings < 10 && min << doublings < r->max ? min << doublings : r->max;
}
