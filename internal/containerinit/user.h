// The user, groups, capabilities and environment of the container's program.
#pragma once

#include "config.h"

// groups_allowed reports whether the user namespace permits to set groups. It reads the caller's /proc.
bool groups_allowed(void);

// home_of returns a user's home directory from the text of a passwd file, which it changes, or NULL.
char *home_of(char *text, uid_t uid);

// complete_environment adds HOME to an environment that lacks it, from the container's own /etc/passwd. It is called
// when that is the root.
void complete_environment(struct config *c);

// become gives up what the container's program does not have, and changes to its working directory.
void become(const struct config *c, bool set_groups);
