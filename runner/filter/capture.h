// See capture.c.
#pragma once

// podrun_capture lets this thread load no filter for system calls any more: the first that
// it would load is written to standard output, and the process ends with 0. It returns an
// errno, or 0.
int podrun_capture(void);
