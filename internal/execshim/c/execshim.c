// The exec shim is podrun's last program in a process of a container, before the container's own
// program. It loads a compiled system call filter and executes that program. Without PODRUN_SHIM_EXEC,
// libcontainer has made the process, as a container's first one. With PODRUN_SHIM_EXEC the exec shim makes
// it: then it does what libcontainer's init does for a process that joins a container
// (setns_init_linux.go, nsexec.c), in the same order where the order matters, and before the
// process is visible from the container.
//
// It fails as a whole: it skips no step, and it reports a failed step with its errno.
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/stat.h>

#include "syscall.h"
#include "config.h"
#include "reply.h"

// The input buffer holds the largest configuration.
static char input[sizeof(struct config) + PODRUN_MAX_SHIM_LIMITS * sizeof(struct limit) + PODRUN_MAX_SHIM_GROUPS * 4 + PODRUN_MAX_SHIM_FILTER * sizeof(struct sock_filter) + 2 * PODRUN_MAX_SHIM_PATH];
static struct config o;
static struct limit *limits;
static __u32 *groups;
static struct sock_filter *filter;
static char *cwd, *profile;

static unsigned long read_input(unsigned long size) { // reads size bytes or fails; returns their offset
	static unsigned long have;
	unsigned long from = have;
	if (size > sizeof input - have)
		fail(PODRUN_STEP_CONFIG, -EINVAL);
	while (have < from + size) {
		long n = sys(__NR_read, PODRUN_FD_SHIM_CHANNEL, input + have, from + size - have);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			fail(PODRUN_STEP_CONFIG, n < 0 ? n : -EINVAL);
		have += n;
	}
	return from;
}

static void read_config(void) {
	memcpy(&o, input + read_input(sizeof o), sizeof o);
	if (o.magic != PODRUN_SHIM_MAGIC || o.limits > PODRUN_MAX_SHIM_LIMITS || o.groups > PODRUN_MAX_SHIM_GROUPS || o.filter > PODRUN_MAX_SHIM_FILTER || o.cwd < 1 || o.cwd > PODRUN_MAX_SHIM_PATH || o.profile > PODRUN_MAX_SHIM_PATH || o.oom_length > sizeof o.oom_score)
		fail(PODRUN_STEP_CONFIG, -EINVAL);
	limits = (void *)(input + read_input(o.limits * sizeof *limits));
	groups = (void *)(input + read_input(o.groups * sizeof *groups));
	filter = (void *)(input + read_input(o.filter * sizeof *filter));
	cwd = input + read_input(o.cwd);
	if (cwd[o.cwd - 1])
		fail(PODRUN_STEP_CONFIG, -EINVAL);
	profile = input + read_input(o.profile);
}

// reset_signals makes a container's process block and ignore no signal, whatever the supervisor and
// the caller that started the pod do.
static void reset_signals(void) {
	__u64 none = 0;
	for (int sig = 1; sig <= 64; sig++) {
		unsigned long act[8] = {0}; // the kernel's struct; the handler is first
		if (sys(__NR_rt_sigaction, sig, 0, act, 8) == 0 && act[0] == 1) {
			act[0] = 0;
			sys(__NR_rt_sigaction, sig, act, 0, 8);
		}
	}
	sys(__NR_rt_sigprocmask, 2, &none, 0, 8);
}

static void set_oom_score(void) {
	must(PODRUN_STEP_OOM, sys(__NR_prctl, PR_SET_DUMPABLE, 1)); // otherwise the file belongs to the host's root
	long fd = sys(__NR_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	must(PODRUN_STEP_OOM, fd);
	must(PODRUN_STEP_OOM, sys(__NR_write, fd, o.oom_score, o.oom_length));
	sys(__NR_close, fd);
	must(PODRUN_STEP_OOM, sys(__NR_prctl, PR_SET_DUMPABLE, 0));
}

static void enter_container(void) {
	static unsigned char every[8192]; // processors: the supervisor's affinity is not the container's
	for (__u32 i = 0; i < o.limits; i++) {
		__u64 l[2] = {limits[i].soft, limits[i].hard};
		must(PODRUN_STEP_LIMITS, sys(__NR_prlimit64, 0, limits[i].type, l, 0));
	}
	memset(every, 0xff, sizeof every);
	sys(__NR_sched_setaffinity, 0, sizeof every, every); // like libcontainer, ignores an error
	must(PODRUN_STEP_ENTER, sys(__NR_setns, PODRUN_FD_SHIM_TARGET, o.namespaces));
	sys(__NR_close, PODRUN_FD_SHIM_TARGET);
	if (o.flags & PODRUN_SHIM_NO_NEW_PRIVS)
		must(PODRUN_STEP_PRIVILEGES, sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1));
}

static void drop_bounding(void) {
	for (int c = 0; c < 64; c++) {
		long have = sys(__NR_prctl, PR_CAPBSET_READ, c);
		if (have < 0)
			break; // the kernel has no more
		if (have && !(o.bounding >> c & 1))
			must(PODRUN_STEP_BOUNDING, sys(__NR_prctl, PR_CAPBSET_DROP, c));
	}
}

// give_stdio makes the process's user the owner of its input and output, as libcontainer does. It
// leaves files whose owner has no id in this user namespace.
static void give_stdio(void) {
	for (int fd = 0; fd < 3; fd++) {
		struct statx st;
		must(PODRUN_STEP_STDIO, sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st));
		int null = (st.stx_mode & S_IFMT) == S_IFCHR && st.stx_rdev_major == 1 && st.stx_rdev_minor == 3;
		if (st.stx_uid == o.uid || null)
			continue;
		long err = sys(NR_fchown, fd, o.uid, -1);
		if (err != -EPERM && err != -EROFS)
			must(PODRUN_STEP_STDIO, err);
	}
}

static void set_user(void) {
	static char where[PODRUN_MAX_SHIM_PATH];
	long err = sys(__NR_chdir, cwd);
	int later = err == -EPERM || err == -EACCES; // the user may have access where root of the namespace has none
	if (!later)
		must(PODRUN_STEP_DIRECTORY, err);
	drop_bounding();
	must(PODRUN_STEP_USER, sys(__NR_prctl, PR_SET_KEEPCAPS, 1));
	give_stdio();
	if (o.flags & PODRUN_SHIM_SET_GROUPS)
		must(PODRUN_STEP_GROUPS, sys(NR_setgroups, o.groups, groups));
	must(PODRUN_STEP_GROUP, sys(NR_setgid, o.gid));
	must(PODRUN_STEP_USER, sys(NR_setuid, o.uid));
	if (later)
		must(PODRUN_STEP_DIRECTORY, sys(__NR_chdir, cwd));
	must(PODRUN_STEP_DIRECTORY, sys(__NR_getcwd, where, sizeof where));
	if (where[0] != '/') // CVE-2024-21626
		fail(PODRUN_STEP_OUTSIDE, -ENOENT);
	must(PODRUN_STEP_USER, sys(__NR_prctl, PR_SET_KEEPCAPS, 0));
}

static void set_capabilities(__u64 caps) {
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{caps, caps, 0}, {caps >> 32, caps >> 32, 0}};
	must(PODRUN_STEP_CAPABILITIES, sys(__NR_capset, &h, d));
}

// load_filter loads the filter and sets the final capabilities. Without no_new_privs loading takes
// CAP_SYS_ADMIN, so the capabilities are dropped afterwards. With it the filter comes last, so that
// it need not permit the steps before.
static void load_filter(void) {
	struct sock_fprog p = {o.filter, filter};
	long loaded = 0;
	if (o.flags & PODRUN_SHIM_NO_NEW_PRIVS)
		set_capabilities(o.permitted);
	if (o.filter && o.filter_flags)
		loaded = sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, o.filter_flags, &p);
	else if (o.filter)
		loaded = sys(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
	must(PODRUN_STEP_FILTER, loaded);
	if (!(o.flags & PODRUN_SHIM_NO_NEW_PRIVS))
		set_capabilities(o.permitted);
}

// set_profile requests the AppArmor profile or the SELinux label for the moment when the program is
// executed, not before: the profile may forbid the exec shim's own steps and its channel. Only the
// process itself can request that, in the container's own /proc.
static void set_profile(void) {
	__u32 fs[64] __attribute__((aligned(8))); // the kernel's struct; the type is first
	if (!o.profile)
		return;
	long fd = -ENOENT;
	if (!(o.flags & PODRUN_SHIM_LABEL))
		fd = sys(__NR_openat, AT_FDCWD, "/proc/self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);
	if (fd == -ENOENT) // SELinux's, and AppArmor's before Linux 5.8
		fd = sys(__NR_openat, AT_FDCWD, "/proc/self/attr/exec", O_WRONLY | O_CLOEXEC);
	must(PODRUN_STEP_PROFILE, fd);
	must(PODRUN_STEP_PROFILE, sys(__NR_fstatfs, fd, fs));
	if (fs[0] != PROC_SUPER_MAGIC) // a volume covers it
		fail(PODRUN_STEP_PROFILE, -EINVAL);
	must(PODRUN_STEP_PROFILE, sys(__NR_write, fd, profile, o.profile));
	sys(__NR_close, fd);
}

static const char *path_of(char **env) {
	for (; *env; env++) {
		const char *p = "PATH=", *q = *env;
		while (*p && *p == *q)
			p++, q++;
		if (!*p)
			return q;
	}
	return "";
}

// exec_program executes the program. It searches the absolute directories of PATH for a name
// without slash.
static __attribute__((noreturn)) void exec_program(char **argv, char **env) {
	static char file[2 * PODRUN_MAX_SHIM_PATH];
	long err = -ENOENT, denied = 0;
	const char *name = argv[0], *dir, *s;
	for (s = name; *s && *s != '/'; s++)
		;
	if (*s || !*name) {
		err = sys(__NR_execve, name, argv, env);
		if (err == -ENOENT && *name && sys(__NR_faccessat, AT_FDCWD, name, 0) == 0)
			fail(PODRUN_STEP_INTERPRETER, err);
		fail(PODRUN_STEP_EXECUTE, err);
	}
	for (dir = path_of(env); *dir; dir += *dir == ':') {
		unsigned long n = 0, absolute = *dir == '/';
		while (*dir && *dir != ':')
			if (n < PODRUN_MAX_SHIM_PATH)
				file[n++] = *dir++;
			else
				dir++;
		file[n++] = '/';
		for (s = name; *s && n < sizeof file - 1;)
			file[n++] = *s++;
		file[n] = 0;
		if (!absolute || *s)
			continue;
		err = sys(__NR_execve, file, argv, env);
		if (err == -ENOENT && sys(__NR_faccessat, AT_FDCWD, file, 0) == 0)
			fail(PODRUN_STEP_INTERPRETER, err);
		if (err == -EACCES)
			denied = err;
		else if (err != -ENOENT && err != -ENOTDIR)
			fail(PODRUN_STEP_EXECUTE, err);
	}
	fail(PODRUN_STEP_EXECUTE, denied ? denied : -ENOENT);
}

// fork_process makes the process that will be the program, as a child of the supervisor, and ends.
// The new process waits until its pid is sent, so that none runs that the supervisor does not know.
static void fork_process(void) {
	int gate[2];
	char c;
	must(PODRUN_STEP_FORK, sys(__NR_pipe2, gate, O_CLOEXEC));
	long pid = syscall5(__NR_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	must(PODRUN_STEP_FORK, pid);
	if (pid > 0) {
		send_reply(PODRUN_SHIM_STARTED, pid);
		sys(__NR_write, gate[1], "x", 1);
		exit_with(0);
	}
	sys(__NR_close, gate[1]);
	if (sys(__NR_read, gate[0], &c, 1) != 1)
		exit_with(126);
	must(PODRUN_STEP_SESSION, sys(__NR_setsid));
}

// exec_in_container makes the process in the container. When the process is in there, and visible,
// it has nothing left that is not the container's; with PODRUN_SHIM_FILTER_EARLY it is also confined by then.
static void exec_in_container(void) {
	if (o.oom_length)
		set_oom_score();
	enter_container();
	set_user();
	int loads = o.filter && !(o.flags & PODRUN_SHIM_NO_NEW_PRIVS); // loading takes CAP_SYS_ADMIN then
	must(PODRUN_STEP_CAPABILITIES, sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0));
	set_capabilities(loads ? o.permitted | 1ULL << CAP_SYS_ADMIN : o.permitted);
	if (o.flags & PODRUN_SHIM_FILTER_EARLY)
		load_filter();
	fork_process();
	set_profile();
	if (!(o.flags & PODRUN_SHIM_FILTER_EARLY))
		load_filter();
}

__attribute__((noreturn, used)) void execshim_main(long *stack) {
	char **argv = (char **)(stack + 1), **env = argv + *stack + 1;
	sys(__NR_prctl, PR_SET_NAME, PODRUN_COMM_SHIM);
	must(PODRUN_STEP_PRIVILEGES, sys(__NR_prctl, PR_SET_DUMPABLE, 0)); // no process may trace it or open its descriptors
	must(PODRUN_STEP_PRIVILEGES, sys(__NR_fcntl, PODRUN_FD_SHIM_CHANNEL, F_SETFD, FD_CLOEXEC));
	if (*stack < 2)
		fail(PODRUN_STEP_CONFIG, -EINVAL);
	read_config();
	reset_signals();
	if (o.timer_slack)
		must(PODRUN_STEP_CONFIG, sys(__NR_prctl, PR_SET_TIMERSLACK, o.timer_slack));
	if (o.flags & PODRUN_SHIM_EXEC) {
		must(PODRUN_STEP_CONFIG, sys(__NR_close_range, PODRUN_FD_SHIM_CHANNEL + 1, ~0U, 0));
		exec_in_container();
	} else {
		must(PODRUN_STEP_CONFIG, sys(__NR_close, PODRUN_FD_SHIM_TARGET));
		must(PODRUN_STEP_CAPABILITIES, sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0));
		drop_bounding();
		set_profile();
		load_filter();
	}
	exec_program(argv + 1, env);
}
