package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/volumes"
)

// writtenMax bounds what containers can write to the files that the kubelet gives them,
// /etc/hosts and the like and termination logs, all together: elsewhere they would fill
// the user's runtime directory, which is memory (CVE-2020-8557).
const writtenMax = 16 << 20

// writtenDir is a small file system in memory with those files.
func (s *sandbox) writtenDir() string { return filepath.Join(s.dir, "written") }

// files makes what is bound over /etc/hosts, /etc/hostname and /etc/resolv.conf. What the
// network says is written later, into the same files: see nameFiles.
func (s *sandbox) files() error {
	if err := os.MkdirAll(s.dir, 0o711); err != nil {
		return fmt.Errorf("make sandbox directory: %w", err)
	}
	if err := volumes.MountTmpfs(s.writtenDir(), writtenMax, 0o711, s.plan.FileLabel); err != nil {
		return err
	}
	for name, text := range map[string]string{"hostname": s.plan.NodeName() + "\n", "resolv.conf": "", "hosts": ""} {
		path := filepath.Join(s.writtenDir(), name)
		err := writeShared(path, text, 0o644)
		if err == nil {
			err = s.own(path)
		}
		if err != nil {
			return fmt.Errorf("write the pod's /etc/%s: %w", name, err)
		}
	}
	return nil
}

// nameFiles writes what containers find names by, once the network is known. Containers may
// wait that have it bound, but none that runs.
func (s *sandbox) nameFiles() error {
	resolv, events := s.resolvFile()
	s.events = events
	if err := writeShared(filepath.Join(s.writtenDir(), "resolv.conf"), resolv, 0o644); err != nil {
		return fmt.Errorf("write the pod's /etc/resolv.conf: %w", err)
	}
	return s.writeHosts()
}

// writeHosts writes /etc/hosts, whatever containers have made of it: again for each that
// is started again, as the kubelet does (ensureHostsFile).
func (s *sandbox) writeHosts() error {
	if err := writeShared(filepath.Join(s.writtenDir(), "hosts"), hostsFile(s.plan, s.addresses()), 0o644); err != nil {
		return fmt.Errorf("write the pod's /etc/hosts: %w", err)
	}
	return nil
}

func (s *sandbox) removeFiles() error {
	return errors.Join(volumes.Unmount(s.writtenDir()), volumes.RemoveTree(s.dir))
}

// writeShared writes a file that containers of any user see: the umask must not
// take bits away.
func writeShared(path, text string, mode os.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
