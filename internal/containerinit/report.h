// How a failed step reaches libcontainer's parent side: as a message of its protocol (procError in its sync.go).
#pragma once

// report_to sets the socket for failed steps.
void report_to(int socket);

// must reports a failed step, if result is negative, with what it was about and errno, and ends the process.
void must(long result, const char *step, const char *about);

// refuse reports what cannot be done, and ends the process.
void refuse(const char *what, const char *about) __attribute__((noreturn));
