package resource

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kustomize"
	"github.com/podrun/podrun/internal/manifest"
)

// kustomizePrefix is how a directory of -k is written among files. A word of a command line that begins with a dash is no
// file.
const kustomizePrefix = "-k "

// IsKustomization reports whether a file is the directory of -k.
func IsKustomization(file string) bool { return strings.HasPrefix(file, kustomizePrefix) }

// FilesOf returns the files that the flags --filename and --kustomize and the words name.
func FilesOf(env *cmdutil.Env, c *cli.Context, words []string) ([]string, error) {
	files := append(c.StringSlice("filename"), words...)
	env.AllowRemote = c.Bool("allow-remote")
	if !c.IsSet("kustomize") {
		if env.AllowRemote && c.String("path") == "" && !slices.ContainsFunc(files, IsArtifact) {
			return nil, cmdutil.UsageErrorf(commandPath(c), "--allow-remote requires -k, --path, or an artifact")
		}
		return files, nil
	}
	if len(files) > 0 {
		return nil, cmdutil.UsageErrorf(commandPath(c), "only one of -f or -k can be specified")
	}
	return []string{kustomizePrefix + c.String("kustomize")}, nil
}

// kustomizations are the names of kustomize's files (sigs.k8s.io/kustomize: api/konfig/general.go).
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// readKustomization builds the kustomization in a directory.
func readKustomization(env *cmdutil.Env, name, dir string, vars map[string]string) ([]Source, error) {
	data, err := kustomize.Build(env, dir)
	if err == nil && len(env.EnvFiles) > 0 {
		data, err = manifest.Substitute(name, data, vars)
	}
	if err != nil {
		return nil, err
	}
	return []Source{{Name: name, Data: data, Namespace: env.Namespace, RejectOtherNamespaces: env.NamespaceFlag != ""}}, nil
}

// findKustomization returns the directory with a kustomization that an artifact has at the path sub; "" if it has none there.
func (a *artifact) findKustomization(sub string, written []string) string {
	if sub != "" && !fs.ValidPath(sub) {
		return "" // manifests reports it
	}
	dir := filepath.Join(a.top, sub)
	if slices.ContainsFunc(written, func(name string) bool {
		return filepath.Dir(filepath.Join(a.top, name)) == dir && slices.Contains(kustomizations, filepath.Base(name))
	}) {
		return dir
	}
	return ""
}
