package ingest

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDirFlag is FS_TOPDIR_FL of the kernel's include/uapi/linux/fs.h, chattr's T.
const topDirFlag = 0x20000

// hintPlacement marks a directory for ext4 as the top of unrelated trees, as chattr +T does. Each layer then
// gets a block group of its own, with its files close together. In a single group, parallel unpackers would
// wait for each other. Also, ext4 without a journal does not reuse an inode for some minutes: for every file
// it would search past all inodes that the last image freed. It is a hint only: other file systems refuse
// it, and nothing depends on it.
func hintPlacement(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&topDirFlag == 0 {
		unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDirFlag))
	}
}
