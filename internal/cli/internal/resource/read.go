package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

// maxManifest limits what is read of one file; a single document may have 1 MiB.
const maxManifest = 32 << 20

// readFile reads a manifest; "-" is standard input.
func readFile(env *cmdutil.Env, file string) ([]byte, error) {
	in := env.In
	switch {
	case IsURL(file):
		body, err := download(file)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		in = body
	case file != "-":
		opened, err := cmdutil.OpenInput(file)
		if err != nil {
			return nil, UnreadableError(file, err)
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	switch {
	case err != nil:
		return nil, UnreadableError(file, err)
	case len(data) > maxManifest:
		return nil, report.New(report.Usage, "", "cannot read the manifest: %s is larger than %d MiB", DisplayName(file), maxManifest>>20)
	}
	if file == "-" {
		env.In = &rereader{text: data}
	}
	return data, nil
}

// rereader is standard input that can be read more than once: after its end it starts again.
type rereader struct {
	text []byte
	at   int
}

func (r *rereader) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	if r.at += n; n == 0 && len(p) > 0 {
		r.at = 0
		return 0, io.EOF
	}
	return n, nil
}

// UnreadableError returns the error for a manifest that cannot be read.
func UnreadableError(file string, err error) error {
	switch {
	case file == "":
		return report.New(report.Usage, "", "cannot read the manifest: the file's name is empty")
	}
	return report.New(report.Usage, "", "cannot read the manifest: %w", err)
}

// DisplayName returns a file's name for messages.
func DisplayName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// Source is the text of one file.
type Source struct {
	Name      string
	Data      []byte
	Namespace string        // for objects that set none; "" is the default
	Warnings  []api.Message // of a compose file
	Builds    []api.Build   // of the images of a compose file
	Files     []string      // the compose files that were found without their names
	Artifact  *Artifact     // that has the file; nil if none has

	RejectOtherNamespaces bool // an object that sets another namespace is an error: -n was given
}

// ReadFiles reads files, all manifests in directories and in artifacts, and the contents of URLs. With an error it also
// returns what could be read.
func ReadFiles(env *cmdutil.Env, files []string) ([]Source, error) {
	var all []Source
	var errs []error
	if env.ArtifactPath != "" && !slices.ContainsFunc(files, func(file string) bool { return IsArtifact(file) || isDirectory(file) }) {
		errs = append(errs, report.New(report.Usage, "podrun up oci://REFERENCE --path DIRECTORY", "--path chooses a directory in an artifact or a directory, and no file is one"))
	}
	vars, err := Variables(env)
	if err != nil {
		return nil, err
	}
	var plain []string // between two artifacts: compose files are of one project
	read := func() {
		if len(plain) > 0 {
			expanded, err := expandDirectories(plain)
			sources, readErr := readAll(env, plain, expanded, vars, false)
			all, errs, plain = append(all, sources...), append(errs, err, readErr), nil
		}
	}
	for _, file := range files {
		dir, built := strings.CutPrefix(file, kustomizePrefix)
		inside := env.ArtifactPath != "" && isDirectory(file)
		if !IsArtifact(file) && !built && !inside {
			plain = append(plain, file)
			continue
		}
		read()
		var sources []Source
		var err error
		switch {
		case built:
			sources, err = readKustomization(env, dir, dir, vars)
		case inside:
			sources, err = readInside(env, file, vars)
		default:
			sources, err = readArtifact(env, file, vars)
		}
		all, errs = append(all, sources...), append(errs, err)
	}
	read()
	if len(files) == 0 && (env.Compose.Search || env.Compose.Converted != nil) {
		return convertCompose(env, nil, nil, false)
	}
	return all, errors.Join(errs...)
}

// Variables returns the variables of the files of --env-file; a later file replaces variables of an earlier one. A line
// without a value has its variable from the environment.
func Variables(env *cmdutil.Env) (map[string]string, error) {
	vars := map[string]string{}
	for _, file := range env.EnvFiles {
		lines, err := cmdutil.ReadEnvFile(file)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				value = env.Getenv(name)
			}
			vars[name] = value
		}
	}
	return vars, nil
}

// readArtifact reads the manifests of an artifact.
func readArtifact(env *cmdutil.Env, file string, vars map[string]string) ([]Source, error) {
	a, err := openArtifact(env, file)
	if err != nil {
		return nil, err
	}
	defer a.remove()
	sources, err := a.read(env, a.files, vars, true)
	for i := range sources {
		sources[i].Name, sources[i].Artifact = a.name(sources[i].Name), &a.Artifact
		for j := range sources[i].Warnings {
			sources[i].Warnings[j].File = a.name(sources[i].Warnings[j].File)
		}
	}
	if err == nil {
		return sources, nil
	}
	var errs []error
	for _, part := range report.Parts(err) {
		errs = append(errs, renamed{part, a})
	}
	return sources, errors.Join(errs...)
}

// readInside reads what is in the directory of --path in a directory, as if an artifact had the files.
func readInside(env *cmdutil.Env, dir string, vars map[string]string) ([]Source, error) {
	a := &artifact{file: dir, top: dir}
	var files []string
	var err error
	if fs.ValidPath(env.ArtifactPath) { // find reports others, and one that does not exist
		err = fs.WalkDir(os.DirFS(dir), env.ArtifactPath, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, name)
			}
			return err
		})
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = a.find(env.ArtifactPath, files, "")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests %s: %w", dir, err)
	}
	return a.read(env, []string{dir}, vars, false)
}

// read reads the manifests, or builds the kustomization. The other arguments are those of readAll.
func (a *artifact) read(env *cmdutil.Env, given []string, vars map[string]string, foreign bool) ([]Source, error) {
	if a.kustomization != "" {
		return readKustomization(env, a.kustomization, a.kustomization, vars)
	}
	return readAll(env, given, a.files, vars, foreign)
}

// readAll reads files, and converts compose files. given are the files and directories that the user names. Files of others
// are foreign: their compose files may read nothing but files of their directory.
func readAll(env *cmdutil.Env, given, files []string, vars map[string]string, foreign bool) ([]Source, error) {
	var sources []Source
	var errs []error
	for _, file := range files {
		data, err := readFile(env, file)
		if err == nil && len(env.EnvFiles) > 0 && !api.IsComposeFile(data) {
			data, err = manifest.Substitute(DisplayName(file), data, vars)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sources = append(sources, Source{Name: file, Data: data, Namespace: env.Namespace, RejectOtherNamespaces: env.NamespaceFlag != ""})
	}
	sources, err := convertCompose(env, given, sources, foreign)
	errs = append(errs, err)
	for i := range sources {
		sources[i].Name = DisplayName(sources[i].Name)
	}
	return sources, errors.Join(errs...)
}

// convertCompose replaces the compose files of sources by one manifest: they are the files of one project. If the user
// names none (given is nil), they are searched. It
// refuses files that are not in given: a directory does not state which one is the base.
func convertCompose(env *cmdutil.Env, given []string, sources []Source, foreign bool) ([]Source, error) {
	request := env.Compose.Request
	var rest []Source
	index := 0
	for _, s := range sources {
		if !api.IsComposeFile(s.Data) {
			rest = append(rest, s)
			continue
		}
		if IsURL(s.Name) {
			return rest, report.New(report.Usage, "download it", "%s is a compose file, which is read from a directory", s.Name)
		}
		if !slices.Contains(given, s.Name) {
			return rest, report.New(report.Usage, "name the compose files, the base first: podrun up compose.yaml compose.override.yaml", "%s is a compose file in a directory", s.Name)
		}
		if len(request.Files) == 0 {
			index = len(rest)
		}
		request.Files = append(request.Files, s.Name)
	}
	if len(request.Files) == 0 && given != nil {
		if len(request.Services) > 0 && len(sources) > 0 {
			_, err := os.Stat(request.Services[0])
			return sources, UnreadableError(request.Services[0], err) // only after a compose file it is a service
		}
		return sources, nil
	}
	if done := env.Compose.Converted; done != nil {
		return []Source{composeSource(env, *done)}, nil
	}
	var err error
	if request.Confined, err = policyInForce(env, rest); err != nil {
		return rest, err
	}
	request.Confined, request.EnvFiles = request.Confined || foreign, env.EnvFiles
	result, err := compose.Convert(env, request)
	if err != nil {
		return rest, err
	}
	return slices.Insert(rest, index, composeSource(env, result)), nil
}

// composeSource returns a converted project as a source.
func composeSource(env *cmdutil.Env, r api.Result) Source {
	return Source{
		Name: r.Files[0] + " as a manifest", Data: []byte(r.Manifest), Namespace: env.Namespace, RejectOtherNamespaces: env.NamespaceFlag != "",
		Warnings: r.Warnings, Builds: r.Builds, Files: r.Files,
	}
}

// IsManifestName reports whether a file of a directory is a manifest, as in kubectl.
func IsManifestName(name string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name))
}

func isDirectory(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}

// expandDirectories replaces each directory by its manifests, sorted by name.
func expandDirectories(files []string) (out []string, err error) {
	var errs []error
	for _, file := range files {
		if !isDirectory(file) {
			out = append(out, file) // reading it reports the error
			continue
		}
		list, err := os.ReadDir(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read the manifests: %w", err))
			continue
		}
		found := 0
		for _, e := range list {
			if slices.Contains(kustomizations, e.Name()) {
				errs = append(errs, report.New(report.Usage, "-k "+file+" builds it", "the directory %s has a kustomization", file))
			}
			if !e.IsDir() && IsManifestName(e.Name()) {
				out, found = append(out, filepath.Join(file, e.Name())), found+1
			}
		}
		if found == 0 {
			errs = append(errs, report.New(report.Usage, "", "there are no manifests in the directory %s: no file ends in .yaml, .yml or .json", file))
		}
	}
	return out, errors.Join(errs...)
}

// IsURL reports whether a file is a URL.
func IsURL(file string) bool {
	return strings.HasPrefix(file, "http://") || strings.HasPrefix(file, "https://")
}

// downloadTime limits the download of a manifest.
const downloadTime = 30 * time.Second

// download gets the contents of a URL.
func download(address string) (io.ReadCloser, error) {
	client := http.Client{Timeout: downloadTime, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 10:
			return errors.New("it was redirected ten times")
		case via[0].URL.Scheme == "https" && to.URL.Scheme != "https":
			return fmt.Errorf("it is redirected to %s, which is not https", to.URL.Redacted())
		}
		return nil
	}}
	answer, err := client.Get(address)
	if err != nil {
		return nil, report.New(report.Failure, "", "cannot fetch the manifest: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, report.New(report.Failure, "", "cannot fetch the manifest %s: the server returned %s", address, report.Escape(answer.Status))
	}
	return answer.Body, nil
}
