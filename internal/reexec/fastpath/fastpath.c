//go:build embedprograms

// This constructor passes commands of the fast path (internal/cli/fastpath) to its program before the Go
// runtime starts: initialising the packages of the CLI takes longer than such a command. The
// program lies next to the supervisor's program and is of this very version; if it is missing,
// nothing happens.
//
// The constructor executes nothing that another user could have put there: after su or sudo, HOME
// and XDG_DATA_HOME may be another user's.
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64 // on 32 bits stat would fail for large inode numbers
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol.h"
#include "fastpath.h" // PODRUN_FASTPATH and PODRUN_FASTPATH_BYTES, its name in libexec and its size; made by scripts/build

static const char *fastpath_words[] = {"exec", "logs", "ps", "get", "down", "stop"};

// fastpath_place writes the path of libexec as internal/store computes it. It returns 0 if there is
// none.
static int fastpath_place(char *path, size_t room) {
	const char *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME");
	int n;
	if (getuid() == 0)
		n = snprintf(path, room, "/var/lib/podrun/libexec");
	else if (data && *data)
		n = snprintf(path, room, "%s/podrun/libexec", data);
	else if (home && *home)
		n = snprintf(path, room, "%s/.local/share/podrun/libexec", home);
	else
		return 0;
	return n > 0 && (size_t)n < room && path[0] == '/';
}

// ours reports whether only the user and root could have made or changed a file.
static int ours(const struct stat *st) {
	return st->st_uid == getuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// fastpath_libexec opens the directory that contains the complete program. It returns -1 if there is
// none.
static int fastpath_libexec(const char *path) {
	struct stat st;
	int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -1;
	if (fstat(dir, &st) == 0 && ours(&st) && fstatat(dir, PODRUN_FASTPATH, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    ours(&st) && S_ISREG(st.st_mode) && st.st_size == PODRUN_FASTPATH_BYTES)
		return dir;
	close(dir);
	return -1;
}

__attribute__((constructor(101))) static void podrun_fastpath(int argc, char **argv) {
	char path[4096], number[16];
	size_t i, known = sizeof fastpath_words / sizeof *fastpath_words;
	int exe, dir, self = -1;
	if (argc < 2 || getenv(PODRUN_ENV_CLI) || getenv(PODRUN_ENV_ENTER) || getauxval(AT_SECURE))
		return;
	for (i = 0; i < known && strcmp(argv[1], fastpath_words[i]); i++)
		;
	if (i == known || !fastpath_place(path, sizeof path) || (dir = fastpath_libexec(path)) < 0)
		return;
	if ((exe = open("/proc/self/exe", O_PATH | O_CLOEXEC)) >= 0) {
		self = fcntl(exe, F_DUPFD, 3); // not at the number of a closed standard stream
		close(exe);
	}
	snprintf(number, sizeof number, "%d", self);
	if (self >= 0 && setenv(PODRUN_ENV_CLI, number, 1) == 0) {
		execveat(dir, PODRUN_FASTPATH, argv, environ, AT_SYMLINK_NOFOLLOW);
		unsetenv(PODRUN_ENV_CLI);
	}
	if (self >= 0)
		close(self);
	close(dir);
}
