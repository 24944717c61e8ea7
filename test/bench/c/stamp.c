// stamp prints the time, in nanoseconds of CLOCK_MONOTONIC, which all containers share. With
// arguments it then executes them. It is static, so that it runs in any container.
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	dprintf(1, "%lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
	if (argc > 1) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		return 127;
	}
	return 0;
}
