// The keeper is the pod's pause-equivalent: PID 1 of the pod's own PID namespace,
// owner of its network, IPC and UTS namespaces, reaper of its orphans. It never
// starts Go. When it dies the kernel kills everything in the namespace, so a pod
// is never left half alive; it ends when its supervisor does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "enter.h"

static void wait_signals(sigset_t *set) {
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
}

static int exit_code(int st) { return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st); }

// keep reaps until the supervisor has ended. A stop signal is passed on as SIGUSR1,
// which harms no Go program that is not listening yet, until the supervisor obeys.
static void __attribute__((noreturn)) keep(pid_t supervisor, sigset_t *set) {
	static const struct timespec again = {.tv_nsec = 250000000};
	int stopping = 0;
	for (;;) {
		int sig = stopping ? sigtimedwait(set, NULL, &again) : sigwaitinfo(set, NULL);
		if (sig < 0 ? errno == EAGAIN : sig != SIGCHLD) {
			stopping = 1;
			kill(supervisor, SIGUSR1);
		}
		int st;
		pid_t pid;
		while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
			if (pid == supervisor)
				_exit(exit_code(st));
	}
}

static void close_range_from(unsigned first) {
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
	for (int fd = first; fd < 1024; fd++) // before Linux 5.9
		close(fd);
}

// forget_segment unmaps what of the program is only read; what is needed again
// comes back from the page cache.
static int forget_segment(struct dl_phdr_info *info, size_t size, void *unused) {
	unsigned long page = sysconf(_SC_PAGESIZE);
	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		unsigned long start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		unsigned long end = info->dlpi_addr + p->p_vaddr + p->p_filesz;
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 1; // a static program is all there is
}

void podrun_forget_program(void) { dl_iterate_phdr(forget_segment, NULL); }

void podrun_keeper(const char *hostname) {
	if (unshare(CLONE_NEWPID) < 0)
		podrun_die("make a PID namespace");
	pid_t keeper = fork();
	if (keeper < 0)
		podrun_die("fork the keeper");
	if (keeper > 0)
		_exit(0);

	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		podrun_die("mount /proc for the pod");
	sigset_t set, before;
	sigprocmask(SIG_BLOCK, NULL, &before);
	wait_signals(&set);
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) < 0)
		podrun_die("make pipe");
	pid_t supervisor = fork();
	if (supervisor < 0)
		podrun_die("fork the supervisor");
	if (supervisor == 0) { // it stays in the host's network: it carries the pod's traffic
		char c;
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			_exit(125); // the keeper has told why
		close(ready[0]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		return;
	}
	prctl(PR_SET_NAME, "podrun-keeper", 0, 0, 0);
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		podrun_die("make the pod's network, IPC and UTS namespaces");
	if (sethostname(hostname, strlen(hostname)) < 0)
		podrun_die("set the pod's hostname");
	if (write(ready[1], "x", 1) != 1)
		podrun_die("start the supervisor");
	close_range_from(PODRUN_LOCK_FD + 1);
	podrun_forget_program();
	keep(supervisor, &set);
}

// leave_host gives the process an empty root: a container that shares its PID
// namespace and may trace reaches what is below /proc/1/root.
static void leave_host(void) {
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		podrun_die("make a mount namespace for the pause process");
	if (mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1") < 0 || chdir("/proc") < 0)
		podrun_die("make an empty root for the pause process");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		podrun_die("enter the empty root of the pause process");
}

void podrun_pause(void) {
	sigset_t set;
	wait_signals(&set);
	leave_host();
	prctl(PR_SET_NAME, "podrun-pause", 0, 0, 0);
	close_range_from(3);
	podrun_forget_program();
	for (;;) {
		int sig;
		sigwait(&set, &sig);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
