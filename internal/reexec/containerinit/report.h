// How a failed step reaches libcontainer's parent side: as a message of its protocol (procError in its sync.go).
#pragma once

// podrun_report_steps_to sets the socket for failed steps.
void podrun_report_steps_to(int socket);

// podrun_must reports a failed step, if result is negative, with what it was about and errno, and ends the process.
void podrun_must(long result, const char *step, const char *about);

// podrun_refuse reports what cannot be done, and ends the process.
void podrun_refuse(const char *what, const char *about) __attribute__((noreturn));
