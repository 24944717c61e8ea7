// The pause process is PID 1 of the PID namespace that a pod's containers share. Helpers for
// processes that only wait, such as this one and the pod init, are here too.
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nsenter.h"

void podrun_block_signals(sigset_t *set, sigset_t *before) {
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	sigprocmask(SIG_BLOCK, set, before);
}

void podrun_close_from(unsigned first) {
	if (syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
	for (int fd = first; fd < 1024; fd++) // before Linux 5.9
		close(fd);
}

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

// enter_empty_root gives the process an empty root: a container that shares its PID namespace and
// may trace can reach everything below /proc/1/root.
static void enter_empty_root(void) {
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		podrun_die("make a mount namespace for the pause process");
	if (mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1") < 0 || chdir("/proc") < 0)
		podrun_die("make an empty root for the pause process");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		podrun_die("enter the empty root of the pause process");
}

// join_namespaces joins the pod's namespaces, the descriptors from FD_PAUSE on: /proc/1 is
// visible to all containers, and it shows the network, too.
static void join_namespaces(void) {
	for (int fd = FD_PAUSE; setns(fd, 0) == 0; fd++)
		;
	if (errno != EBADF)
		podrun_die("enter the pod's namespaces with the pause process");
}

void podrun_drop_privileges(void) {
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		podrun_die("give up rights");
}

void podrun_pause(void) {
	sigset_t set;
	podrun_block_signals(&set, NULL);
	join_namespaces();
	enter_empty_root();
	podrun_drop_privileges();
	prctl(PR_SET_NAME, COMM_PAUSE, 0, 0, 0);
	podrun_close_from(FD_PAUSE);
	podrun_drop_program_pages();
	for (;;) {
		int sig;
		sigwait(&set, &sig);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

void podrun_pause_in_userns(int userns) {
	if (setns(userns, CLONE_NEWUSER) < 0 || setresuid(0, 0, 0) < 0)
		podrun_die("join the pod's own user namespace");
	close(userns);
	pid_t pause = syscall(SYS_clone, CLONE_PARENT | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pause < 0)
		podrun_die("make a shared PID namespace");
	if (pause == 0) {
		close(STDOUT_FILENO); // a reader there waits for end of file
		podrun_pause();
	}
	_exit(dprintf(STDOUT_FILENO, "%d", pause) < 0);
}
