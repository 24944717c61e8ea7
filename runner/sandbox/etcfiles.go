package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/volumes"
)

// etcFilesMax limits the total size that containers can write to the files that the kubelet makes for them:
// /etc/hosts and the like, and termination logs. Without a limit they could fill the user's runtime
// directory, which is memory (CVE-2020-8557).
const etcFilesMax = 16 << 20

// EtcDir returns the path of the tmpfs, of etcFilesMax bytes, with the files that containers can write to.
func (s *Sandbox) EtcDir() string { return filepath.Join(s.Dir, "etc") }

// makeEtcFiles makes the files that are bound over /etc/hosts, /etc/hostname and /etc/resolv.conf. Content
// that depends on the network is written into the same files later: see WriteNameFiles.
func (s *Sandbox) makeEtcFiles() error {
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return fmt.Errorf("make sandbox directory: %w", err)
	}
	if err := volumes.MountTmpfs(s.EtcDir(), etcFilesMax, 0o711, s.Plan.FileLabel); err != nil {
		return err
	}
	for name, text := range map[string]string{"hostname": s.Plan.KernelHostname() + "\n", "resolv.conf": "", "hosts": ""} {
		path := filepath.Join(s.EtcDir(), name)
		err := WriteFile(path, text, 0o644)
		if err == nil {
			err = s.ChownToPod(path)
		}
		if err != nil {
			return fmt.Errorf("write the pod's /etc/%s: %w", name, err)
		}
	}
	return nil
}

// WriteNameFiles writes the files for name resolution once the network is known. Prepared containers may
// have them bound already, but none of them runs.
func (s *Sandbox) WriteNameFiles() error {
	resolv, events := s.ResolvConf()
	s.ResolvEvents = events
	if err := WriteFile(filepath.Join(s.EtcDir(), "resolv.conf"), resolv, 0o644); err != nil {
		return fmt.Errorf("write the pod's /etc/resolv.conf: %w", err)
	}
	return s.WriteHosts()
}

// WriteHosts writes /etc/hosts, and so overwrites changes by containers. It is called at each restart of a
// container, too, as in the kubelet (ensureHostsFile).
func (s *Sandbox) WriteHosts() error {
	if err := WriteFile(filepath.Join(s.EtcDir(), "hosts"), network.HostsFile(s.Plan, s.Addresses()), 0o644); err != nil {
		return fmt.Errorf("write the pod's /etc/hosts: %w", err)
	}
	return nil
}

func (s *Sandbox) removeDir() error {
	return errors.Join(volumes.Unmount(s.EtcDir()), volumes.RemoveTree(s.Dir))
}

// WriteFile writes a file that containers of any user can read: it sets the mode independently of the
// umask.
func WriteFile(path, text string, mode os.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
