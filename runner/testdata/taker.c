// taker waits until it sees a process that runs podrun's program and opens that program's file. Once no
// process runs it, taker opens it for writing and sets its mode to 0. Then it waits with both descriptors
// open.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int take(int pid) {
	char path[64], target[256];
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	if (strstr(target, "podrun-execshim"))
		return fd;
	close(fd);
	return -1;
}

int main(void) {
	char path[64];
	int fd = -1;
	while (fd < 0) {
		DIR *d = opendir("/proc");
		for (struct dirent *e; d && fd < 0 && (e = readdir(d));)
			if (atoi(e->d_name) > 1)
				fd = take(atoi(e->d_name));
		if (d)
			closedir(d);
	}
	printf("taken\n");
	fflush(stdout);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int write = -1;
	while ((write = open(path, O_WRONLY)) < 0 && errno == ETXTBSY)
		;
	printf("write: %s\n", write < 0 ? strerror(errno) : "open");
	printf("mode: %s\ndone\n", chmod(path, 0) < 0 ? strerror(errno) : "0");
	fflush(stdout);
	for (;;)
		pause();
}
