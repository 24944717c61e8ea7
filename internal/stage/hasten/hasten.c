//go:build embedback

// Before the Go runtime starts, commands that the quick front knows (cli/quick) are handed to it:
// initialising the packages of the whole front takes longer than such a command. It lies where
// the supervisor's program does, of this very version, or it does not and nothing happens.
//
// _PODRUN_FRONT is the descriptor of this program, for what the quick front leaves to it; where
// it is set the quick front has been asked already.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quick.h" // PODRUN_QUICK, its name in libexec; made by scripts/build

static const char *quick_words[] = {"exec"};

// quick_program finds the program as internal/store finds libexec. Without it, 0.
static int quick_program(char *path, size_t room) {
	const char *home = getenv("HOME"), *data = getenv("XDG_DATA_HOME");
	int n;
	if (getuid() == 0)
		n = snprintf(path, room, "/var/lib/podrun/libexec/%s", PODRUN_QUICK);
	else if (data && *data)
		n = snprintf(path, room, "%s/podrun/libexec/%s", data, PODRUN_QUICK);
	else if (home && *home)
		n = snprintf(path, room, "%s/.local/share/podrun/libexec/%s", home, PODRUN_QUICK);
	else
		return 0;
	return n > 0 && (size_t)n < room && path[0] == '/' && access(path, X_OK) == 0;
}

__attribute__((constructor(101))) static void podrun_hasten(int argc, char **argv) {
	char path[4096], number[16];
	size_t i, known = sizeof quick_words / sizeof *quick_words;
	if (argc < 2 || getenv("_PODRUN_FRONT") || getenv("_PODRUN_ENTER") || getuid() != geteuid())
		return;
	for (i = 0; i < known && strcmp(argv[1], quick_words[i]); i++)
		;
	if (i == known || !quick_program(path, sizeof path))
		return;
	int self = open("/proc/self/exe", O_PATH);
	if (self < 0)
		return;
	snprintf(number, sizeof number, "%d", self);
	if (setenv("_PODRUN_FRONT", number, 1) == 0)
		execv(path, argv);
	unsetenv("_PODRUN_FRONT");
	close(self);
}
