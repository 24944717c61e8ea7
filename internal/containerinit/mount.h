// The mounts of a container, below its root, and the change to that root.
#pragma once

#include "config.h"

// mount_root makes the container's root a mount that no other namespace shares, and returns a descriptor of it.
int mount_root(const struct config *c);

// mount_all makes the container's mounts.
void mount_all(int root, const struct config *c);

// protect_paths makes paths read-only and masks others. The paths that are not there need neither.
void protect_paths(int root, const struct config *c);

// enter_root makes root the root directory of the process and of its mount namespace.
void enter_root(int root);

// make_read_only makes the root read-only, without the mounts below it.
void make_read_only(int root);
