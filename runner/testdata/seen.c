// seen prints the attributes of its process, line by line: what the kernel shows of it and what it may do.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static void file(const char *path, const char *prefix, const char *const *skip) {
	char line[4096];
	FILE *f = fopen(path, "re");
	if (!f) {
		printf("%s %s\n", path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof line, f)) {
		int out = 0;
		for (const char *const *s = skip; *s; s++)
			out |= !strncmp(line, *s, strlen(*s));
		if (!out)
			printf("%s%s", prefix, line);
	}
	fclose(f);
}

static int first(const struct dirent *d) { return d->d_name[0] != '.'; }

static void descriptors(void) {
	struct dirent **list;
	int n = scandir("/proc/self/fd", &list, first, alphasort);
	for (int i = 0; i < n; i++) {
		char path[300], target[300];
		snprintf(path, sizeof path, "/proc/self/fd/%s", list[i]->d_name);
		ssize_t len = readlink(path, target, sizeof target - 1);
		struct stat st;
		if (len < 0)
			continue; // scandir's own descriptor
		target[len] = 0;
		fstat(atoi(list[i]->d_name), &st);
		printf("fd %s %.*s mode %o owner %d flags %x %x\n", list[i]->d_name, (int)strcspn(target, ":"), target, st.st_mode, st.st_uid,
		       fcntl(atoi(list[i]->d_name), F_GETFD), fcntl(atoi(list[i]->d_name), F_GETFL));
	}
}

// namespaces prints the namespaces that containers share. The others it compares with the first process in sight.
static void namespaces(void) {
	static const char *const shared[] = {"ipc", "net", "time", "user", "uts"}, *const names[] = {"cgroup", "mnt", "pid", "pid_for_children"};
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		char path[64], ours[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", shared[i]);
		printf("namespace %s\n", readlink(path, ours, sizeof ours - 1) < 0 ? strerror(errno) : ours);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[64], ours[64] = "", first[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		if (readlink(path, ours, sizeof ours - 1) < 0)
			snprintf(ours, sizeof ours, "?");
		snprintf(path, sizeof path, "/proc/1/ns/%s", names[i]);
		if (readlink(path, first, sizeof first - 1) < 0)
			snprintf(first, sizeof first, "? %s", strerror(errno));
		printf("namespace %s %s\n", names[i], *first == '?' ? first : strcmp(ours, first) ? "another than the container's" : "the container's");
	}
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// mounts prints where what is mounted how, without the numbers and paths that differ from one container to the next.
static void mounts(void) {
	char line[8192], *list[512];
	int n = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	while (f && n < 512 && fgets(line, sizeof line, f)) {
		char root[1024], where[1024], how[256], rest[4096], optional[256] = "", kind[64], options[2048];
		if (sscanf(line, "%*d %*d %*s %1023s %1023s %255s %4095[^\n]", root, where, how, rest) != 4)
			abort();
		char *dash = strstr(rest, "- ");
		for (char *word = rest; word < dash; word += strcspn(word, " ") + 1)
			strncat(strcat(optional, " "), word, strcspn(word, ": "));
		if (sscanf(dash, "- %63s %*s %2047s", kind, options) != 2)
			abort();
		int own = strcspn(root, "0123456789"); // files whose names have a container's
		if (asprintf(&list[n++], "%s %.*s %s%s %s %.9s", where, own, strncmp(kind, "overlay", 7) ? root : "", how, optional, kind, strcmp(kind, "overlay") ? options : "") < 0)
			abort();
	}
	qsort(list, n, sizeof *list, by_text);
	for (int i = 0; i < n; i++)
		printf("mount %s\n", list[i]);
}

static void tell(const char *name, long result) { printf("call %s %s\n", name, result < 0 ? strerror(errno) : "done"); }

#define TRY(name, ...) tell(#name, syscall(SYS_##name, ##__VA_ARGS__))

static void calls(void) {
	TRY(keyctl, 0, 0, 0);
	TRY(add_key, 0, 0, 0, 0, 0);
	TRY(request_key, 0, 0, 0, 0);
	TRY(bpf, 0, 0, 0);
	TRY(perf_event_open, 0, 0, 0, 0, 0);
	TRY(userfaultfd, -1);
	TRY(unshare, 0x10000000);
	TRY(unshare, 0x00020000);
	TRY(setns, -1, 0);
	TRY(mount, 0, 0, 0, 0, 0);
	TRY(umount2, "/nothing", 0);
	TRY(pivot_root, 0, 0);
	TRY(chroot, 0);
	TRY(reboot, 0, 0, 0, 0);
	TRY(init_module, 0, 0, 0);
	TRY(delete_module, 0, 0);
	TRY(kexec_load, 0, 0, 0, 0);
	TRY(swapon, 0, 0);
	TRY(settimeofday, 0, 0);
	TRY(acct, "/nothing");
	TRY(quotactl, 0, 0, 0, 0);
	TRY(personality, 0xffffffff);
	TRY(personality, 0x1234);
	TRY(clone3, 0, 0);
	TRY(io_uring_setup, 0, 0);
	TRY(open_by_handle_at, -1, 0, 0);
	TRY(name_to_handle_at, -1, 0, 0, 0, 0);
	TRY(process_vm_readv, 0, 0, 0, 0, 0, 0);
	TRY(ptrace, 16, 999999, 0, 0);
	TRY(socket, 40, 1, 0); // AF_VSOCK
	TRY(mknodat, AT_FDCWD, "/nothing/x", 0, 0);
	TRY(openat2, -1, 0, 0, 0);
	for (long nr = 403; nr < 480; nr++) { // the first 21 are the 64-bit time calls of 32-bit machines
		char name[16];
		snprintf(name, sizeof name, "%ld", nr);
		tell(name, syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L));
	}
}

int main(int argc, char **argv) {
	static const char *const varying[] = {"Name:", "Pid:", "Tgid:", "Ngid:", "PPid:", "TracerPid:", "NStgid:", "NSpid:", "NSpgid:", "NSsid:", "Vm", "Rss", "voluntary", "nonvoluntary", "FDSize:", "HugetlbPages:", "SigQ:", NULL};
	static const char *const none[] = {NULL};
	unsigned char cpus[1024] = {0};
	char dir[4096];
	descriptors();
	file("/proc/self/status", "status ", varying);
	file("/proc/self/limits", "limit ", none);
	file("/proc/self/oom_score_adj", "oom_score_adj ", none);
	file("/proc/self/cgroup", "cgroup ", none);
	file("/proc/self/attr/current", "label ", none);
	namespaces();
	mounts();
	printf("securebits %d\n", prctl(PR_GET_SECUREBITS));
	printf("keepcaps %d\n", prctl(PR_GET_KEEPCAPS));
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	printf("subreaper %d\n", ({ int on = -1; prctl(PR_GET_CHILD_SUBREAPER, &on); on; }));
	printf("death signal %d\n", ({ int sig = -1; prctl(PR_GET_PDEATHSIG, &sig); sig; }));
	printf("timer slack %d\n", prctl(PR_GET_TIMERSLACK));
	printf("umask %o\n", umask(0));
	printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
	printf("policy %d\n", sched_getscheduler(0));
	printf("session %s group %s\n", getsid(0) == getpid() ? "leader" : "member", getpgrp() == getpid() ? "leader" : "member");
	printf("parent in sight %d\n", getppid() != 0);
	syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
	for (int i = 0; i < 8; i++)
		printf("cpus %d %02x\n", i, cpus[i]);
	printf("directory %s\n", getcwd(dir, sizeof dir) ? dir : strerror(errno));
	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **e = environ; *e; e++)
		printf("variable %s\n", *e);
	if (argc > 1 && !strcmp(argv[1], "calls"))
		calls();
	if (argc > 2 && !strcmp(argv[2], "stay")) {
		printf("that is all\n");
		fflush(stdout);
		for (;;)
			pause();
	}
	return 0;
}
