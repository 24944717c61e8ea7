// floor LOWER WORK PROGRAM measures the minimum cost of a pod's container. In a user namespace,
// like a supervisor, it prints the time (stamp.c). Then it makes a mount and a PID namespace, an
// overlay over LOWER, /proc, /dev with its six devices and the masked and read-only paths, calls
// pivot_root, drops all capabilities and executes PROGRAM. It uses no seccomp filter, no cgroup and
// no monitoring process.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void must(long result, const char *what) {
	if (result < 0) {
		perror(what);
		_exit(125);
	}
}

static void put(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd, path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static const char *join(const char *a, const char *b) {
	char *s;
	must(asprintf(&s, "%s%s", a, b), "memory");
	return s;
}

static const char *devices[] = {"/null", "/zero", "/full", "/random", "/urandom", "/tty"};
static const char *masked[] = {"/proc/kcore", "/proc/keys", "/proc/timer_list"};
static const char *readonly[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"};

static void file_systems(const char *lower, const char *work) {
	const char *merged = join(work, "/merged");
	char options[3 * 4096];
	must(mount("tmpfs", work, "tmpfs", 0, ""), "mount the place of the container");
	must(mkdir(join(work, "/upper"), 0755) | mkdir(join(work, "/work"), 0755) | mkdir(merged, 0755), "make directories");
	snprintf(options, sizeof options, "userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower, work, work);
	must(mount("overlay", merged, "overlay", 0, options), "mount the overlay");
	mkdir(join(merged, "/proc"), 0755);
	mkdir(join(merged, "/dev"), 0755);
	must(mount("proc", join(merged, "/proc"), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "mount /proc");
	must(mount("tmpfs", join(merged, "/dev"), "tmpfs", MS_NOSUID, "mode=755"), "mount /dev");
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		const char *to = join(join(merged, "/dev"), devices[i]);
		close(open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
		must(mount(join("/dev", devices[i]), to, NULL, MS_BIND, NULL), to);
	}
	must(chdir(merged), merged);
	must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(umount2(".", MNT_DETACH), "leave the old root");
	must(chdir("/"), "/");
	for (size_t i = 0; i < sizeof masked / sizeof *masked; i++)
		if (mount("/dev/null", masked[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			must(-1, masked[i]);
	for (size_t i = 0; i < sizeof readonly / sizeof *readonly; i++) {
		must(mount(readonly[i], readonly[i], NULL, MS_BIND | MS_REC, NULL), readonly[i]);
		must(mount(NULL, readonly[i], NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), readonly[i]);
	}
}

int main(int argc, char **argv) {
	char map[64];
	int status;
	struct timespec begun;
	if (argc < 4)
		return 2;
	uid_t uid = getuid();
	gid_t gid = getgid();
	must(unshare(CLONE_NEWUSER), "make a user namespace");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %d 1", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %d 1", gid);
	put("/proc/self/gid_map", map);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	dprintf(1, "%lld\n", begun.tv_sec * 1000000000LL + begun.tv_nsec);
	must(unshare(CLONE_NEWNS | CLONE_NEWPID), "make namespaces");
	pid_t child = fork();
	must(child, "fork");
	if (child == 0) {
		must(mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL), "detach");
		file_systems(argv[1], argv[2]);
		for (int c = 0; c <= 40; c++)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
		must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
		execv(argv[3], argv + 3);
		must(-1, argv[3]);
	}
	must(waitpid(child, &status, 0), "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
