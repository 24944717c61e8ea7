package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// nameBuilds gives an image name to the services that have build and no image.
func (c *converter) nameBuilds() {
	for name, s := range c.project.Services {
		if s.Build != nil && s.Image == "" {
			s.Image = "localhost/" + toName(c.project.Name+"-"+name) + ":latest"
			c.project.Services[name] = s
		}
	}
}

// setBuild adds the build of the service's image.
func (s *service) setBuild() {
	b := s.Build
	switch {
	case b == nil && s.PullPolicy == types.PullPolicyBuild:
		s.refuse(s.at("pull_policy"), "is refused: the service has no build")
	case b == nil:
	case s.request.Confined:
		s.refuse(s.at("build"), "is refused under a policy, and in an artifact: a build reads files and runs programs. Name an image")
	case s.PullPolicy == types.PullPolicyAlways:
		s.refuse(s.at("pull_policy"), "is refused with build: the image would be pulled over the built one. Use build or missing")
	default:
		build := api.Build{
			Service: s.Name, Image: s.Image, Context: b.Context, Dockerfile: b.Dockerfile, Inline: b.DockerfileInline, Args: map[string]string{},
			Target: b.Target, Labels: b.Labels, Network: b.Network, ExtraHosts: b.ExtraHosts.AsList(":"), ShmSize: int64(b.ShmSize), Tags: b.Tags,
			NoCache: b.NoCache, Pull: b.Pull, Always: s.PullPolicy == types.PullPolicyBuild,
		}
		slices.Sort(build.ExtraHosts)
		for name, value := range b.Args {
			if value != nil { // an argument without a value is not set on the host either
				build.Args[name] = *value
			}
		}
		s.builds = append(s.builds, build)
	}
}

// withInputs sets the hash of the inputs of builds.
func withInputs(builds []api.Build) []api.Build {
	for i := range builds {
		hash, err := inputs(builds[i])
		if builds[i].Inputs = hash; err != nil {
			builds[i].Problem = err.Error()
		}
	}
	return builds
}

// inputs returns a hash of what a build depends on: its options, the Dockerfile, and the names, modes, sizes and times of
// the context's files that .dockerignore does not exclude.
func inputs(b api.Build) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(b); err != nil {
		return "", err
	}
	if !b.IsLocal() {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	dockerfile := filepath.Join(b.Context, b.Dockerfile)
	if filepath.IsAbs(b.Dockerfile) {
		dockerfile = b.Dockerfile
	}
	if b.Inline == "" {
		text, err := os.ReadFile(dockerfile)
		if err != nil {
			return "", fmt.Errorf("cannot read the Dockerfile: %w", err)
		}
		fmt.Fprintf(h, "dockerfile %d\n%s", len(text), text)
	}
	ignored, err := readIgnored(b.Context, dockerfile)
	if err != nil {
		return "", err
	}
	if err := hashTree(h, b.Context, ignored); err != nil {
		return "", fmt.Errorf("cannot read the context of the build: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readIgnored returns the patterns of DOCKERFILE.dockerignore, or else of .dockerignore, as docker and buildah do.
func readIgnored(context, dockerfile string) (*patternmatcher.PatternMatcher, error) {
	var patterns []string
	for _, name := range []string{dockerfile + ".dockerignore", filepath.Join(context, ".dockerignore")} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if patterns, err = ignorefile.ReadAll(f); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		break
	}
	m, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf("the patterns of .dockerignore: %w", err)
	}
	return m, nil
}

// hashTree writes the names, modes, sizes and times of a directory's files.
func hashTree(w io.Writer, dir string, ignored *patternmatcher.PatternMatcher) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		skip, err := ignored.MatchesOrParentMatches(name)
		switch {
		case err != nil:
			return err
		case skip && entry.IsDir() && !ignored.Exclusions():
			return fs.SkipDir
		case skip:
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir(): // its time changes with files that are excluded
			_, err = fmt.Fprintf(w, "%q %s\n", name, info.Mode())
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(path); err == nil {
				_, err = fmt.Fprintf(w, "%q -> %q\n", name, target)
			}
		default:
			_, err = fmt.Fprintf(w, "%q %s %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
}
