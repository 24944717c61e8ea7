// Package image brings OCI images onto this machine and keeps them: from a
// registry, from archives, from a root file system.
//
// # The store
//
//	images/<id>.json       one image: its manifest and config byte for byte, its layers' diffIDs
//	names/<sha256>.json    one name (sha256 of the normalised reference) and the image it points to
//	layers/<diffid>/fs     one unpacked layer, shared by every image and pod that uses it
//	layers/<diffid>/layer.json
//	layers/<diffid>/recipe.gz   with it the files make the layer's tar stream again
//	layers/<diffid>/settled     its sizes were looked at after a restart of the machine
//	layers/<diffid>/damaged     it is not used for another pod until it is replaced
//	retired/<diffid>…/     a replaced layer, until the pods that run from it have gone
//	staging/<random>/      what is being unpacked or removed
//	staging/<diffid>.lock  held while that layer is being unpacked
//	lock                   shared while an image is added or used, alone while layers are freed
//	records.lock           held alone while images/ and names/ change
//
// A layer is streamed: read, digest of the blob, decompress, diffID, unpack, all
// at once. Only when both digests are right is it made durable (syncfs) and moved
// into layers/ by one rename; only when all its layers are there is an image
// recorded, and only then named. So what is listed is whole, whatever was killed
// or cut off, and what is in staging/ while nobody holds the lock is rubbish, which
// the next one to add an image removes.
//
// Layer blobs are not kept: unpacked layers are what pods run from, and blobs
// beside them would double the disk an image takes. A layer's recipe has what its tar
// stream had besides the files' content, and a checksum of each file: see recipe.go. So
// Verify compares files with the layer's diffID, and Save writes the stream again.
//
// # Unpacking
//
// The tar stream of a stranger is unpacked by a child process (the stage _unpack)
// that cannot see anything but the directory it fills: see confine.go. Ids are
// those of the user namespace in which pods run, so files belong to the user's
// subordinate ids. An owner that the namespace does not map becomes 0, loses
// set-id bits and file capabilities, and is counted in Info.Squashed: with a
// single id every file belongs to the user.
//
// Whiteouts are kept as overlayfs knows them: a character device 0:0, which needs
// no privilege since Linux 5.8, and user.overlay.opaque, for overlays mounted with
// userxattr (Linux 5.11, the first that an ordinary user can mount at all). Other
// devices are never made. Of the extended attributes, user.* without user.overlay.*
// and security.capability are kept: the rest is the kernel's or the host's.
//
// A directory that a layer implies without an entry of its own is 0755 and 0:0, as
// with docker and podman.
package image
