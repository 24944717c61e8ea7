#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { failed = 255 }; // exit code of libcontainer's init

static int to = -1;

void podrun_report_steps_to(int socket) { to = socket; }

// quoted writes text as the inside of a JSON string.
static void quoted(char *out, size_t size, const char *text) {
	size_t n = 0;
	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			out[n++] = '\\';
		out[n++] = (unsigned char)*text < ' ' ? '?' : *text;
	}
	out[n] = 0;
}

static __attribute__((noreturn)) void report(const char *text) {
	char inside[2048], message[2200];
	quoted(inside, sizeof inside, text);
	int n = snprintf(message, sizeof message, "{\"type\":\"procError\",\"flags\":0,\"arg\":{\"message\":\"%s\"}}", inside);
	if (write(to, message, n) < 0)
		dprintf(2, "%s\n", text);
	_exit(failed);
}

void podrun_must(long result, const char *step, const char *about) {
	if (result >= 0)
		return;
	char text[1024], *error = strerror(errno);
	snprintf(text, sizeof text, "%s%s%.700s: %c%s", step, *about ? " " : "", about, error[0] | 0x20, error + 1); // as Go writes it
	report(text);
}

void podrun_refuse(const char *what, const char *about) {
	char text[1024];
	snprintf(text, sizeof text, "%s%s%.700s", what, *about ? ": " : "", about);
	report(text);
}
