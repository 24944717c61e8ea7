// The mounts of a container, below its root, and the change to that root.
#pragma once

#include "config.h"

// podrun_open_proc opens a path of the caller's /proc, which must be a file system of processes.
int podrun_open_proc(const char *path, int flags);

// podrun_mount_root makes the container's root a mount that no other namespace shares, and returns a descriptor of it.
int podrun_mount_root(const struct config *c);

// podrun_mount_all makes the container's mounts.
void podrun_mount_all(int root, const struct config *c);

// podrun_protect_paths makes paths read-only and masks others. The paths that are not there need neither.
void podrun_protect_paths(int root, const struct config *c);

// podrun_enter_root makes root the root directory of the process and of its mount namespace.
void podrun_enter_root(int root);

// podrun_make_directory makes a directory of the container, with the directories above it. It changes path meanwhile. No link
// to a descriptor of this process, or to the root of another process, leads out of the container.
void podrun_make_directory(int root, char *path);

// podrun_make_read_only makes the root read-only, without the mounts below it.
void podrun_make_read_only(int root);
