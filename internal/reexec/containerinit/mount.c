// Every target is resolved below the container's root by the kernel, once, and is held open from then on: no link of the
// image leads out of the root, and no rename between two steps has an effect. Paths of the caller are used before the root
// changes only, /proc/self/fd among them; nothing in the container's /proc is read or written.
#define _GNU_SOURCE
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "report.h"

enum { no_mount = -1, detach = 2 }; // MNT_DETACH, which the C library alone defines

// The C library's own header for mounts does not go together with the kernel's, so its functions are not used.
static long mount_old(const char *source, const char *target, const char *type, unsigned long flags, const char *data) {
	return syscall(SYS_mount, source, target, type, flags, data);
}

// open_below opens a path below a directory without using it. With RESOLVE_IN_ROOT links of the image are resolved as in the
// container.
static int open_below(int dir, const char *path, unsigned long long resolve) {
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS | resolve};
	return syscall(SYS_openat2, dir, path, &how, sizeof how);
}

// fd_path writes the path of a descriptor in the caller's /proc.
static const char *fd_path(char path[static 32], int fd) {
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

static bool is_in_proc(int fd) {
	struct statfs s;
	return fstatfs(fd, &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

int podrun_open_proc(const char *path, int flags) {
	int fd = open(path, flags | O_CLOEXEC);
	podrun_must(fd, "open", path);
	if (!is_in_proc(fd))
		podrun_refuse("/proc is no file system of processes", path);
	return fd;
}

int podrun_mount_root(const struct config *c) {
	unsigned long all = c->root_propagation ? c->root_propagation : MS_SLAVE | MS_REC;
	if (all & ~(MS_SLAVE | MS_PRIVATE | MS_REC))
		podrun_refuse("the root's propagation is for libcontainer's init", "");
	podrun_must(mount_old("", "/", "", all, ""), "detach the mounts of", "/");
	podrun_must(mount_old("", c->rootfs, "", all & MS_SLAVE ? MS_SLAVE : MS_PRIVATE, ""), "detach the root", c->rootfs);
	podrun_must(mount_old(c->rootfs, c->rootfs, "bind", MS_BIND | MS_REC, ""), "bind the root", c->rootfs);
	int root = open(c->rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	podrun_must(root, "open the root", c->rootfs);
	return root;
}

// open_target opens the target of a mount, and makes it if it is a directory in the root that the image lacks.
static int open_target(int root, const struct mount *m) {
	bool pure = !strcmp(m->type, "proc") || !strcmp(m->type, "sysfs");
	unsigned long long resolve = RESOLVE_IN_ROOT | (pure ? RESOLVE_NO_SYMLINKS : 0);
	int fd = open_below(root, m->target, resolve);
	if (fd < 0 && errno == ENOENT && !strchr(m->target + 1, '/')) {
		podrun_must(mkdirat(root, m->target + 1, 0755), "make", m->target);
		fd = open_below(root, m->target, resolve);
	}
	podrun_must(fd, "open the mount point", m->target);
	struct stat st, top;
	podrun_must(fstat(fd, &st), "look at", m->target);
	podrun_must(fstat(root, &top), "look at", "/");
	if (!S_ISDIR(st.st_mode) || (st.st_ino == top.st_ino && st.st_dev == top.st_dev))
		podrun_refuse("the mount point is no directory in the root", m->target);
	if (is_in_proc(fd)) // CVE-2019-19921
		podrun_refuse("the mount point is in /proc", m->target);
	return fd;
}

static unsigned long long attributes(unsigned long flags) {
	static const struct { unsigned long flag; unsigned long long attribute; } table[] = {
		{MS_RDONLY, MOUNT_ATTR_RDONLY}, {MS_NOSUID, MOUNT_ATTR_NOSUID}, {MS_NODEV, MOUNT_ATTR_NODEV}, {MS_NOEXEC, MOUNT_ATTR_NOEXEC},
	};
	unsigned long long set = 0;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (flags & table[i].flag)
			set |= table[i].attribute;
	return set;
}

static void set_attributes(int tree, unsigned recursive, unsigned long long set, unsigned long propagation, const char *about) {
	struct mount_attr a = {.attr_set = set, .propagation = propagation};
	if (set || propagation)
		podrun_must(syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | recursive, &a, sizeof a), "set the attributes of", about);
}

// clone_tree returns a copy of the mount at a path, or at a descriptor with the path "".
static int clone_tree(int dir, const char *path, unsigned recursive, const char *about) {
	int tree = syscall(SYS_open_tree, dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);
	podrun_must(tree, "copy the mount of", about);
	return tree;
}

// attach moves a tree of mounts to its target, which it closes.
static void attach(int tree, int target, const char *about) {
	podrun_must(syscall(SYS_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH), "mount", about);
	close(target);
}

// place is attach for a tree that is not needed any more.
static void place(int tree, int target, const char *about) {
	attach(tree, target, about);
	close(tree);
}

static void bind_tree(const char *source, int target, const struct mount *m) {
	if (m->flags & ~(unsigned long)(MS_BIND | MS_REC | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME))
		podrun_refuse("the mount's flags are for libcontainer's init", m->target);
	int tree = clone_tree(AT_FDCWD, source, m->flags & MS_REC ? AT_RECURSIVE : 0, source);
	if (!strcmp(m->target, "/proc") && !is_in_proc(tree)) // CVE-2019-16884
		podrun_refuse("no file system of processes can be mounted at", m->target);
	set_attributes(tree, m->propagation & MS_REC ? AT_RECURSIVE : 0, 0, m->propagation & ~(unsigned long)MS_REC, m->target);
	set_attributes(tree, 0, attributes(m->flags), 0, m->target);
	place(tree, target, m->target);
}

// mount_cgroup mounts the container's own cgroups. Where the kernel refuses that, it binds them.
static void mount_cgroup(int target, const struct mount *m, const struct config *c) {
	char path[32];
	if (mount_old(m->source, fd_path(path, target), "cgroup2", m->flags, m->data) == 0) {
		close(target);
		return;
	}
	if ((errno != EPERM && errno != EBUSY) || !c->cgroup || !*c->cgroup)
		podrun_must(no_mount, "mount", m->target);
	bind_tree(c->cgroup, target, m);
}

void podrun_mount_all(int root, const struct config *c) {
	char path[32];
	for (size_t i = 0; i < c->mount_count; i++) {
		struct mount *m = &c->mounts[i];
		int target = open_target(root, m);
		if (!strcmp(m->type, "bind")) {
			bind_tree(m->source, target, m);
		} else if (!strcmp(m->type, "cgroup")) {
			mount_cgroup(target, m, c);
		} else if (m->propagation || (m->flags & MS_BIND)) {
			podrun_refuse("the mount's flags are for libcontainer's init", m->target);
		} else if (!strcmp(m->type, "proc") || !strcmp(m->type, "sysfs") || !strcmp(m->type, "devpts")) {
			podrun_must(mount_old(m->source, fd_path(path, target), m->type, m->flags, m->data), "mount", m->target);
			close(target);
		} else {
			podrun_refuse("the kind of the mount is for libcontainer's init", m->target);
		}
	}
}

// open_proc opens the container's /proc. It must be the root of a file system of processes (CVE-2025-52881).
static int open_proc(int root) {
	enum { root_inode = 1 }; // PROC_ROOT_INO
	struct stat st;
	int fd = open_below(root, "/proc", RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	podrun_must(fd, "open", "/proc");
	podrun_must(fstat(fd, &st), "look at", "/proc");
	if (!is_in_proc(fd) || st.st_ino != root_inode)
		podrun_refuse("the container's /proc is no file system of processes", "");
	return fd;
}

// open_path opens a path to be protected, in /proc and behind no link. It returns -1 if it is not there.
static int open_path(int proc, const char *path) {
	if (strncmp(path, "/proc/", 6))
		podrun_refuse("a path to be protected is not in /proc", path);
	int fd = open_below(proc, path + 6, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0 && errno != ENOENT)
		podrun_must(fd, "open", path);
	return fd;
}

// open_null opens the container's /dev/null, which masks files. It must be that device, not what the image or another
// container has put there (CVE-2025-31133).
static int open_null(int root) {
	struct stat st;
	int fd = open_below(root, "/dev/null", RESOLVE_IN_ROOT);
	podrun_must(fd, "open", "/dev/null");
	podrun_must(fstat(fd, &st), "look at", "/dev/null");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		podrun_refuse("the container's /dev/null is not that device", "");
	return fd;
}

// empty_directory returns a mount of an empty read-only file system.
static int empty_directory(void) {
	const char *what = "of masked directories";
	int fs = syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	podrun_must(fs, "open the file system", what);
	podrun_must(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "source", "tmpfs", 0), "configure the file system", what);
	podrun_must(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_blocks", "1", 0), "configure the file system", what);
	if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_inodes", "1", 0) < 0) // Ubuntu's Linux 5.4 wants two
		podrun_must(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_inodes", "2", 0), "configure the file system", what);
	podrun_must(syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "ro", NULL, 0), "configure the file system", what);
	podrun_must(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "make the file system", what);
	int mount = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
	podrun_must(mount, "mount the file system", what);
	close(fs);
	return mount;
}

void podrun_protect_paths(int root, const struct config *c) {
	if (!c->read_only_path_count && !c->masked_path_count)
		return;
	int proc = open_proc(root);
	for (size_t i = 0; i < c->read_only_path_count; i++) {
		const char *path = c->read_only_paths[i];
		int fd = open_path(proc, path);
		if (fd < 0)
			continue;
		int tree = clone_tree(fd, "", AT_RECURSIVE, path);
		set_attributes(tree, 0, MOUNT_ATTR_RDONLY, 0, path);
		place(tree, fd, path);
	}
	int null = no_mount, empty = no_mount; // copied for each path, except the first directory
	for (size_t i = 0; i < c->masked_path_count; i++) {
		const char *path = c->masked_paths[i];
		struct stat st;
		int fd = open_path(proc, path);
		if (fd < 0)
			continue;
		podrun_must(fstat(fd, &st), "look at", path);
		if (S_ISDIR(st.st_mode) && empty < 0) { // before Linux 6.15 only a mount that is attached can be copied
			attach(empty = empty_directory(), fd, path);
			continue;
		}
		if (!S_ISDIR(st.st_mode) && null < 0)
			null = open_null(root);
		place(clone_tree(S_ISDIR(st.st_mode) ? empty : null, "", 0, path), fd, path);
	}
	close(proc);
	if (null >= 0)
		close(null);
	if (empty >= 0)
		close(empty);
}

void podrun_enter_root(int root) {
	int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	podrun_must(old, "open", "/");
	podrun_must(fchdir(root), "enter", "the root");
	podrun_must(syscall(SYS_pivot_root, ".", "."), "change to", "the root");
	podrun_must(fchdir(old), "enter", "the old root");
	podrun_must(mount_old("", ".", "", MS_SLAVE | MS_REC, ""), "detach", "the old root"); // its unmounts do not reach others
	podrun_must(syscall(SYS_umount2, ".", detach), "unmount", "the old root");
	podrun_must(chdir("/"), "enter", "/");
	close(old);
}

void podrun_make_directory(int root, char *path) {
	if (access(path, F_OK) == 0)
		return;
	for (char *name = path; *(name += strspn(name, "/"));) {
		char *end = name + strcspn(name, "/"), first = *name, after = *end;
		*name = 0; // what is before is the directory to make it in
		int dir = open_below(root, path, RESOLVE_IN_ROOT);
		*name = first;
		*end = 0;
		bool failed = dir < 0 || (mkdirat(dir, name, 0755) < 0 && errno != EEXIST);
		*end = after;
		if (failed)
			podrun_must(-1, "make the working directory", path);
		close(dir);
		name = end;
	}
}

void podrun_make_read_only(int root) { set_attributes(root, 0, MOUNT_ATTR_RDONLY, 0, "/"); }
