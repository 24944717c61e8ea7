#define _GNU_SOURCE
#include "user.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mount.h"
#include "report.h"

enum { max_passwd = 1 << 20 }; // as resolveUser of runner/container

bool podrun_groups_allowed(void) {
	char text[8] = "";
	int fd = podrun_open_proc("/proc/self/setgroups", O_RDONLY);
	podrun_must(read(fd, text, sizeof text - 1), "read", "/proc/self/setgroups");
	close(fd);
	return strncmp(text, "deny", 4) != 0;
}

// field returns a line's next field and ends it; at its end an empty one.
static char *field(char **line) {
	char *start = *line, *end = strchr(start, ':');
	*line = end ? end + 1 : start + strlen(start);
	if (end)
		*end = 0;
	return start;
}

// number returns the integer that a field is, or 0, as Go's parser of passwd does.
static long long number(const char *text) {
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	return errno || *end || isspace((unsigned char)*text) ? 0 : v;
}

char *podrun_home_of(char *text, uid_t uid) {
	char *line, *rest = text;
	while ((line = strsep(&rest, "\n"))) {
		while (isspace((unsigned char)*line))
			line++;
		for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]);)
			line[--n] = 0;
		if (!*line)
			continue;
		field(&line); // name
		field(&line); // password
		if (number(field(&line)) != (long long)uid)
			continue;
		field(&line); // group
		field(&line); // comment
		return field(&line);
	}
	return NULL;
}

// home reads the home directory from a regular file; "/" if there is none.
static const char *home(uid_t uid) {
	static char text[max_passwd + 1];
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	struct stat st;
	size_t n = 0;
	ssize_t got = 0;
	int fd = syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how);
	if (fd < 0)
		return "/";
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		while (n < max_passwd && (got = read(fd, text + n, max_passwd - n)) > 0)
			n += got;
	close(fd);
	char *found = got < 0 ? NULL : podrun_home_of(text, uid);
	return found ? found : "/";
}

void podrun_complete_environment(struct config *c) {
	for (size_t i = 0; i < c->env_count; i++)
		if (!strncmp(c->env[i], "HOME=", 5))
			return;
	const char *dir = home(c->uid);
	size_t n = strlen(dir) + sizeof "HOME=";
	char *variable = malloc(n), **env = malloc((c->env_count + 2) * sizeof *env);
	if (!variable || !env)
		podrun_refuse("there is not enough memory for the environment", "");
	snprintf(variable, n, "HOME=%s", dir);
	memcpy(env, c->env, c->env_count * sizeof *env);
	env[c->env_count++] = variable;
	env[c->env_count] = NULL;
	c->env = env;
}

static void drop_bounding(uint64_t keep) {
	for (int i = 0; i < 64; i++) {
		int has = prctl(PR_CAPBSET_READ, i, 0, 0, 0);
		if (has < 0)
			return; // the kernel has no more
		if (has && !(keep >> i & 1))
			podrun_must(prctl(PR_CAPBSET_DROP, i, 0, 0, 0), "bound", "the capabilities");
	}
}

// give_stdio makes the program's user the owner of its input and output, if the owner has an id in this user namespace.
static void give_stdio(uid_t uid) {
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		podrun_must(fstat(fd, &st), "look at", "input and output");
		if (st.st_uid == uid || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
			continue;
		if (fchown(fd, uid, -1) < 0 && errno != EPERM && errno != EROFS)
			podrun_must(-1, "hand over", "input and output");
	}
}

static void set_capabilities(const uint64_t sets[PODRUN_CAP_SETS]) {
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	for (int i = 0; i < 2; i++) {
		d[i].effective = sets[PODRUN_EFFECTIVE] >> 32 * i;
		d[i].permitted = sets[PODRUN_PERMITTED] >> 32 * i;
		d[i].inheritable = sets[PODRUN_INHERITABLE] >> 32 * i;
	}
	podrun_must(syscall(SYS_capset, &h, d), "set", "the capabilities");
	podrun_must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "clear", "the ambient capabilities");
	for (int i = 0; i < 64; i++)
		if (sets[PODRUN_AMBIENT] >> i & 1)
			podrun_must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0), "raise", "an ambient capability");
}

// check_directory refuses a working directory that is not in the container (CVE-2024-21626).
static void check_directory(void) {
	static char path[8192];
	podrun_must(syscall(SYS_getcwd, path, sizeof path), "look up", "the working directory");
	if (path[0] != '/')
		podrun_refuse("the working directory is outside of the container", "");
}

void podrun_become(const struct config *c, bool set_groups) {
	long changed = chdir(c->cwd);
	bool later = changed < 0 && (errno == EPERM || errno == EACCES); // the user may have access where root has none
	if (!later)
		podrun_must(changed, "change to the working directory", c->cwd);
	drop_bounding(c->capabilities[PODRUN_BOUNDING]);
	podrun_must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep", "the capabilities");
	give_stdio(c->uid);
	if (set_groups)
		podrun_must(setgroups(c->group_count, c->groups), "set", "the groups");
	podrun_must(setgid(c->gid), "set", "the group");
	podrun_must(setuid(c->uid), "set", "the user");
	if (later)
		podrun_must(chdir(c->cwd), "change to the working directory", c->cwd);
	check_directory();
	podrun_must(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0), "drop", "the capabilities");
	set_capabilities(c->capabilities);
}
