package ingest

import (
	"os"

	"golang.org/x/sys/unix"
)

// topDirFlag is FS_TOPDIR_FL of the kernel's include/uapi/linux/fs.h, chattr's T.
const topDirFlag = 0x20000

// hintPlacement tells ext4 that what is made in a directory does not belong together, as chattr +T
// does: each layer gets a block group of its own, and its files are near to each other. All of
// them in one group keep each other waiting, and without a journal ext4 does not give an inode
// out again for some minutes: it looks past each that the last image has left, for every file.
// A hint: other file systems refuse it, and nothing depends on it.
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
