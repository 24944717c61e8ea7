package kubeapi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	kubeconfig "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// UserKubeconfig returns a kubeconfig that contains everything: the cluster, the user and the context have one name.
func UserKubeconfig(name, server string, ca, certificate, key []byte) ([]byte, error) {
	data, err := yaml.Marshal(kubeconfig.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: name,
		Clusters:  []kubeconfig.NamedCluster{{Name: name, Cluster: kubeconfig.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []kubeconfig.NamedAuthInfo{{Name: name, AuthInfo: kubeconfig.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}}},
		Contexts:  []kubeconfig.NamedContext{{Name: name, Context: kubeconfig.Context{Cluster: name, AuthInfo: name}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return data, nil
}

// ClusterKubeconfig returns a kubeconfig without a user, as the ConfigMap cluster-info has it.
func ClusterKubeconfig(server string, ca []byte) ([]byte, error) {
	data, err := yaml.Marshal(kubeconfig.Config{
		Kind: "Config", APIVersion: "v1",
		Clusters: []kubeconfig.NamedCluster{{Cluster: kubeconfig.Cluster{Server: server, CertificateAuthorityData: ca}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return data, nil
}

// namedLists are the fields of a kubeconfig that are lists of entries with names.
var namedLists = []string{"clusters", "users", "contexts"}

// MergeKubeconfig adds the entries of a kubeconfig of UserKubeconfig to the file at path, which need not exist, and
// selects its context. Entries of the same name are replaced; everything else in the file stays.
func MergeKubeconfig(path string, added []byte) error {
	var other map[string]any
	if err := yaml.Unmarshal(added, &other); err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	return changeKubeconfig(path, func(file map[string]any) bool {
		for _, list := range namedLists {
			for _, e := range entries(other, list) {
				removeEntry(file, list, entryName(e))
				file[list] = append(entries(file, list), e)
			}
		}
		file["apiVersion"], file["kind"], file["current-context"] = "v1", "Config", other["current-context"]
		return true
	})
}

// RemoveFromKubeconfig removes the entries with a name from the file at path, if it exists.
func RemoveFromKubeconfig(path, name string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return changeKubeconfig(path, func(file map[string]any) (changed bool) {
		for _, list := range namedLists {
			changed = removeEntry(file, list, name) || changed
		}
		if file["current-context"] == name {
			file["current-context"] = ""
			changed = true
		}
		return changed
	})
}

// kubectl holds the lock for moments.
const (
	lockTries = 50
	lockPause = 20 * time.Millisecond
)

// changeKubeconfig replaces a kubeconfig if change returns true. The lock is kubectl's (client-go:
// tools/clientcmd/config.go lockFile).
func changeKubeconfig(path string, change func(file map[string]any) bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the directory of the kubeconfig: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL, 0)
	for tries := 0; errors.Is(err, fs.ErrExist) && tries < lockTries; tries++ {
		time.Sleep(lockPause)
		lock, err = os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL, 0)
	}
	if errors.Is(err, fs.ErrExist) {
		return report.New(report.Failure, "if no kubectl is running, remove "+path+".lock", "lock the kubeconfig %s: another program has locked it", path)
	}
	if err != nil {
		return fmt.Errorf("lock the kubeconfig: %w", err)
	}
	lock.Close()
	defer func() { err = errors.Join(err, os.Remove(path+".lock")) }()
	file := map[string]any{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	if file == nil {
		file = map[string]any{}
	}
	if !change(file) {
		return nil
	}
	if data, err = yaml.Marshal(file); err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	if err := store.WriteFile(path, data); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

func entries(file map[string]any, list string) []any {
	all, _ := file[list].([]any)
	return all
}

func entryName(entry any) string {
	fields, _ := entry.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// removeEntry removes the entries with a name from a list, and reports whether there were any.
func removeEntry(file map[string]any, list, name string) bool {
	before := entries(file, list)
	after := slices.DeleteFunc(slices.Clone(before), func(e any) bool { return entryName(e) == name })
	if len(after) == len(before) {
		return false
	}
	file[list] = after
	return true
}
