package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
)

// The logs of a cluster's pods are in directories with the kubelet's names, for pods that collect logs: pods that mount
// /var/log see ClusterLogDir there. A pod's data directory has a link to its directory. So rotation and removal need no
// copy of the names.
//
//	pods/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log
//	containers/NAME_NAMESPACE_CONTAINER-ID.log → /var/log/pods/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log

const (
	logsLink        = "logs" // in a pod's data directory: a directory, or a link to one
	logsInContainer = "/var/log/pods"
	maxFileName     = 255
	linkEnd         = 1 + 2*sha256.Size + len(".log") // bytes of the name of a link after the container's name
)

// ClusterLogDir returns the directory that the cluster's pods see as /var/log.
func (d Dirs) ClusterLogDir() string { return filepath.Join(d.OfCluster().objectsIn(d.Data), "log") }

func (d Dirs) podLogs() string       { return filepath.Join(d.ClusterLogDir(), "pods") }
func (d Dirs) containerLogs() string { return filepath.Join(d.ClusterLogDir(), "containers") }

// MakeClusterLogDir makes the ClusterLogDir.
func (d Dirs) MakeClusterLogDir() error {
	if err := errors.Join(makeDirs(d.podLogs()), makeDirs(d.containerLogs())); err != nil {
		return fmt.Errorf("make the directory of logs: %w", err)
	}
	return nil
}

// createLogs makes the directory of the logs of a cluster's pod, unless the pod has a directory of its own: its name may
// be too long, or podrun was older when the pod was started.
func (p Pod) createLogs(plan *pod.Plan) error {
	link := filepath.Join(p.data, logsLink)
	if !plan.InCluster() || len(p.logLinkPrefix())+linkEnd > maxFileName || isRealDir(link) {
		return nil
	}
	dir := filepath.Join(p.dirs.podLogs(), p.Namespace+"_"+p.Name+"_"+plan.UID)
	target, err := filepath.Rel(p.data, dir)
	if err == nil {
		err = makeDirs(dir)
	}
	if err == nil {
		err = removeExisting(link)
	}
	if err == nil {
		err = os.Symlink(target, link)
	}
	if err != nil {
		return fmt.Errorf("create log directory: %w", err)
	}
	return nil
}

func isRealDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// clusterLogs returns the pod's directory in pods; "" if it has none.
func (p Pod) clusterLogs() string {
	target, err := os.Readlink(filepath.Join(p.data, logsLink))
	if dir := filepath.Join(p.data, target); err == nil && filepath.Dir(dir) == p.dirs.podLogs() {
		return dir
	}
	return ""
}

// removeLogs removes the directory that createLogs has made, with the links of LinkLogs.
func (p Pod) removeLogs() error {
	dir := p.clusterLogs()
	if dir == "" {
		return nil
	}
	return errors.Join(p.replaceLogLinks(nil), os.RemoveAll(dir))
}

// LinkLogs makes the links in containers those of the logs that the pod has. A pod that has been removed has none.
func (p Pod) LinkLogs() error {
	links := map[string]string{}
	if dir := p.clusterLogs(); dir != "" {
		containers, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("list logs: %w", err)
		}
		_, uid, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), p.Namespace+"_"), "_")
		for _, c := range containers {
			attempts, err := crilog.Attempts(filepath.Join(dir, c.Name()))
			if err != nil {
				return err
			}
			for _, n := range attempts {
				file := strconv.Itoa(n) + ".log"
				links[p.logLink(c.Name(), uid+"-"+c.Name()+"-"+strconv.Itoa(n))] = filepath.Join(logsInContainer, filepath.Base(dir), c.Name(), file)
			}
		}
	}
	return p.replaceLogLinks(links)
}

// logLink returns the kubelet's name of a link (pkg/kubelet/kuberuntime, logSymlink). Collectors expect 64 hexadecimal
// digits as the id of a container, which podrun's ids are not.
func (p Pod) logLink(container, id string) string {
	start := p.logLinkPrefix() + container
	return fmt.Sprintf("%s-%x.log", start[:min(len(start), maxFileName-linkEnd)], sha256.Sum256([]byte(id)))
}

func (p Pod) logLinkPrefix() string { return p.Name + "_" + p.Namespace + "_" }

// replaceLogLinks makes the pod's links those given, by name.
func (p Pod) replaceLogLinks(links map[string]string) error {
	entries, err := os.ReadDir(p.dirs.containerLogs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list links of logs: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if _, wanted := links[e.Name()]; wanted {
			delete(links, e.Name())
		} else if strings.HasPrefix(e.Name(), p.logLinkPrefix()) {
			errs = append(errs, removeExisting(filepath.Join(p.dirs.containerLogs(), e.Name())))
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(p.dirs.containerLogs(), name)); !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("link logs of pod %s: %w", p.Name, err)
	}
	return nil
}
