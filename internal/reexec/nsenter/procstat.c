// The parser of /proc/PID/stat; internal/procfs is the one in Go.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "podinit.h"

int podrun_read_stat(const char *pid, struct podrun_stat *st) {
	char path[32], text[512], *name, *rest;
	memset(st, 0, sizeof *st);
	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	name = strchr(text, '(');
	rest = strrchr(text, ')'); // a program can choose any name
	if (!name || !rest)
		return 0;
	*rest++ = 0;
	snprintf(st->comm, sizeof st->comm, "%s", name + 1);
	return sscanf(text, "%d", &st->pid) == 1 &&
	       sscanf(rest, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &st->ppid, &st->start) == 2;
}
