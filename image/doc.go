// Package image adds OCI images to this machine and stores them. Images come from a registry, from archives
// or from a root file system.
//
// # The store
//
//	images/<id>.json       one image: its manifest and config byte for byte, its layers' diffIDs
//	names/<sha256>.json    one name (sha256 of the normalised reference) and the image it points to
//	layers/<diffid>/fs     one unpacked layer, shared by every image and pod that uses it
//	layers/<diffid>/layer.json
//	layers/<diffid>/recipe.gz   with it the files make the layer's tar stream again
//	layers/<diffid>/settled     its sizes were checked after a restart of the machine
//	layers/<diffid>/damaged     no further pod uses it until it is replaced
//	retired/<diffid>…/     a replaced layer, until the pods that run from it have gone
//	staging/<random>/      what is being unpacked or removed
//	staging/<diffid>.lock  held while that layer is being unpacked
//	lock                   shared while an image is added or used, exclusive while layers are freed
//	records.lock           held exclusively while images/ and names/ change
//
// A layer is streamed: read, digest of the blob, decompress, diffID, unpack, all at once. When both digests
// are right, the layer is made durable (syncfs) and moved into layers/ by one rename. An image is recorded
// only when all its layers are there, and named only after that. So every listed image is complete, whatever
// was killed or cut off. What is in staging/ while no process holds the lock is garbage. The next process
// that adds an image removes it.
//
// Layer blobs are not kept: pods run from unpacked layers, and blobs beside them would double the disk space
// of an image. A layer's recipe holds the parts of its tar stream other than the files' content, and a
// checksum of each file: see layer/recipe.go. With it Verify compares files with the layer's diffID, and
// Save writes the stream again.
//
// # Artifacts
//
// An OCI artifact has no config with diffIDs, and its layers are not tar streams but files, each named by its title.
// The store wraps each into a tar stream with one entry, mode 0644 and owner 0:0, which is unpacked as any other layer.
// When all are fetched, it makes a config with their diffIDs, whose label has the artifact's type. Only a volume can
// use an artifact. An artifact of Flux has manifests in its first layer, which is a tar stream: podrun reads them from the store.
//
// # Unpacking
//
// The untrusted tar stream is unpacked by a child process (re-exec entry point _unpack) that sees only the
// directory it fills: see layer/confine.go. Ids are mapped as in the user namespace in which pods run, so files
// belong to the user's subordinate ids. An owner that the namespace does not map becomes 0, the file loses
// set-id bits and file capabilities, and it is counted in Info.UnmappedOwners. With a single id every file belongs
// to the user.
//
// Whiteouts are stored in overlayfs' form: a character device 0:0, which needs no privilege since Linux 5.8,
// and user.overlay.opaque, for overlays mounted with userxattr (Linux 5.11, the first version in which an
// ordinary user can mount overlayfs). No other devices are made. Of the extended attributes, user.* without
// user.overlay.* and security.capability are kept: the rest belongs to the kernel or the host.
//
// A directory that a layer implies without an entry of its own gets mode 0755 and owner 0:0, as with docker
// and podman.
package image
