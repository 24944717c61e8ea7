// The user, groups, capabilities and environment of the container's program.
#pragma once

#include "config.h"

// podrun_groups_allowed reports whether the user namespace permits to set groups. It reads the caller's /proc.
bool podrun_groups_allowed(void);

// podrun_home_of returns a user's home directory from the text of a passwd file, which it changes, or NULL.
char *podrun_home_of(char *text, uid_t uid);

// podrun_complete_environment adds HOME to an environment that lacks it, from the container's own /etc/passwd. It is called
// when that is the root.
void podrun_complete_environment(struct config *c);

// podrun_become gives up what the container's program does not have, and changes to its working directory.
void podrun_become(const struct config *c, bool set_groups);
