// The user namespace of pods and helpers.
#pragma once

// podrun_become_root makes this process root of a user namespace, unless it is root already: it joins PODRUN_ENV_USER_NS, or
// makes one with the ids of PODRUN_ENV_UID_MAP and PODRUN_ENV_GID_MAP. with is CLONE_NEWNS for a mount namespace, or 0. It
// returns whether it has made a user namespace.
int podrun_become_root(int with);
