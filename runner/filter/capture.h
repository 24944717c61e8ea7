// See capture.c.
#pragma once

// podrun_capture prevents this thread from loading any more seccomp filters: the first one that it would
// load is written to standard output, and the process exits with 0. It returns an errno, or 0.
int podrun_capture(void);
