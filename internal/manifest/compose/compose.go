// Package compose turns the project of compose files into Kubernetes objects. The library of docker compose
// reads and merges the files. An attribute that has no counterpart is refused, with its line.
//
// The package is linked into the image program only: the library is larger than all other code that reads
// manifests.
package compose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/tree"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"

	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/protocol"
)

// EntryPoints returns the entry point that converts compose files.
func EntryPoints() map[string]func(args []string) int {
	return map[string]func([]string) int{protocol.EntryCompose: main}
}

// main converts the files of a request, its argument, and writes the result to standard output.
func main(args []string) int {
	var request api.Request
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &request) != nil {
		fmt.Fprintln(os.Stderr, "podrun: the converter of compose files requires a request")
		return 2
	}
	limits := hardLimits() // before this process has its own
	Bound(!slices.Contains(request.Files, "-"))
	if len(request.Inputs) > 0 {
		return write(api.Result{Builds: withInputs(request.Inputs)})
	}
	return write(convert(context.Background(), request, host{os.Stdin, os.Stat, limits}))
}

// write writes a result to standard output.
func write(result api.Result) int {
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, "podrun: cannot write the converted files:", err)
		return 1
	}
	return 0
}

// host is the machine, as far as the conversion depends on it: input, files that are mounted, limits.
type host struct {
	stdin io.Reader                              // read if a file is "-"
	stat  func(name string) (fs.FileInfo, error) // what a bind mount or a device is
	limit func(name string) (n uint64, ok bool)  // the user's hard limit of processes, by docker's name
}

// convert converts the files of a request.
func convert(ctx context.Context, request api.Request, on host) api.Result {
	c := &converter{host: on, request: request, rows: newRows(), added: map[string][]string{}}
	c.files = sources{names: map[string]string{}, reader: &c.reader}
	logrus.SetOutput(io.Discard)
	logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{logrus.WarnLevel: {c}})
	if err := c.load(ctx, request); errors.Is(err, errReported) {
		return c.result()
	} else if err != nil {
		c.problems = append(c.problems, c.located(err))
		return c.result()
	}
	c.checkAttributes()
	if c.checkSize() {
		c.convert()
	}
	return c.result()
}

// converter makes the objects of one project.
type converter struct {
	host     host
	request  api.Request
	files    sources
	reader   reader
	rows     rows
	project  *types.Project
	findings []loader.UnsupportedAttribute // attributes that are accepted or refused

	environment map[string]string // that the files may use

	known              []string // the names of all services
	builds             []api.Build
	pods               map[string][]string // the services of each pod, by the first, whose network it has
	separate           bool                // the networks separate services
	added              map[string][]string // objects, by kind and name, with their places in the files
	objects            []object
	warnings, problems []api.Message
}

// Levels returns the levels of the library's messages that are warnings to the user.
func (c *converter) Levels() []logrus.Level { return []logrus.Level{logrus.WarnLevel} }

// unsetVariable is the library's warning about a variable.
var unsetVariable = regexp.MustCompile(`The "?\\?"?([A-Za-z0-9_]+)\\?"? variable is not set`)

// Fire makes a message of the library a warning.
func (c *converter) Fire(e *logrus.Entry) error {
	if name := unsetVariable.FindStringSubmatch(e.Message); name != nil && c.withheld(name[1]) {
		c.problems = append(c.problems, api.Message{Text: withheldText(name[1])})
	} else if !strings.Contains(e.Message, "`version` is obsolete") {
		c.warnings = append(c.warnings, api.Message{Text: e.Message})
	}
	return nil
}

// load reads the files.
func (c *converter) load(ctx context.Context, request api.Request) error {
	if files := os.Getenv("COMPOSE_ENV_FILES"); files != "" && len(request.EnvFiles) == 0 {
		request.EnvFiles = strings.Split(files, ",")
	}
	userEnv := cli.WithOsEnv
	if request.Confined {
		userEnv = cli.WithEnv(slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, policyVariables) }))
	}
	options, err := cli.NewProjectOptions(request.Files, cli.WithName(request.Project), cli.WithWorkingDirectory(request.Directory), userEnv, cli.WithEnvFiles(request.EnvFiles...), c.withDotEnv(request),
		cli.WithConfigFileEnv, cli.WithDefaultConfigPath, cli.WithEnvFiles(request.EnvFiles...), c.withDotEnv(request), cli.WithDefaultProfiles(request.Profiles...))
	if err != nil {
		return err
	}
	if len(options.ConfigPaths) == 0 {
		return fmt.Errorf("there is no %s here: name the file", strings.Join(cli.DefaultFileNames, ", "))
	}
	options.WorkingDir, err = options.GetWorkingDir()
	if err != nil {
		return err
	}
	if request.Confined {
		if err := c.reader.confine(options.WorkingDir); err != nil {
			return err
		}
	}
	details := types.ConfigDetails{WorkingDir: options.WorkingDir, Environment: options.Environment}
	c.environment = options.Environment
	for i, name := range options.ConfigPaths {
		text, path, err := c.read(name)
		if err != nil {
			return err
		}
		switch {
		case name == "-":
			name = "standard input"
		case i < len(request.Files):
			name = request.Files[i]
		default:
			name = shown(path)
		}
		c.files.add(name, path, text)
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: path, Content: text})
	}
	for _, f := range c.files.main {
		f.dir = options.WorkingDir
	}
	if err := c.files.check(details.Environment); err != nil {
		return err
	}
	c.project, err = c.loadAll(ctx, details, loader.WithProfiles(profiles(request, options.Environment)),
		c.name(options), loader.WithSupportedAttributes(c.supportedPaths(), func(found []loader.UnsupportedAttribute) { c.findings = found }), c.limited)
	if c.reader.total > maxTotal {
		return errTotal
	}
	if err != nil {
		return err
	}
	if err := c.choose(); err != nil {
		return err
	}
	return c.resolveFiles()
}

// limited makes the library leave env files and label files to resolveFiles, and counts the values of variables.
func (c *converter) limited(o *loader.Options) {
	o.SkipResolveEnvironment, o.SkipResolveLabels = true, true
	lookup := o.Interpolate.LookupValue
	o.Interpolate.LookupValue = func(name string) (string, bool) {
		value, ok := lookup(name)
		if c.reader.total += len(value); c.reader.total > maxTotal {
			return "", true
		}
		return value, ok
	}
}

// withDotEnv is cli.WithDotEnv within the limits. An env file that the user names may be anywhere.
func (c *converter) withDotEnv(request api.Request) cli.ProjectOptionsFn {
	return func(o *cli.ProjectOptions) error {
		read := reader{total: c.reader.total}
		if request.Confined && len(request.EnvFiles) == 0 {
			dir, err := o.GetWorkingDir()
			if err == nil {
				err = read.confine(dir)
			}
			if err != nil {
				return err
			}
		}
		vars := map[string]string{}
		for _, name := range o.EnvFiles {
			if err := read.readEnv(name, "", vars, o.Environment.Resolve); err != nil {
				return fmt.Errorf("cannot read the env file: %w", err)
			}
		}
		o.Environment.Merge(vars)
		return nil
	}
}

// read returns the text and the path of a file that the user names.
func (c *converter) read(name string) (text []byte, path string, err error) {
	if name == "-" {
		text, err = c.reader.readAll(c.host.stdin, "standard input")
		return text, name, err
	}
	if path, err = filepath.Abs(name); err != nil {
		return nil, "", err
	}
	named := reader{total: c.reader.total}
	text, err = named.read(path)
	c.reader.total = named.total
	return text, path, err
}

// profiles returns the profiles of a request, or the environment's.
func profiles(request api.Request, env types.Mapping) []string {
	if len(request.Profiles) > 0 {
		return request.Profiles
	}
	return strings.Split(env["COMPOSE_PROFILES"], ",")
}

// name returns the option that sets the project's name: from the request, the environment, a file, or the name of the
// directory.
func (c *converter) name(options *cli.ProjectOptions) func(*loader.Options) {
	if options.Name == "" {
		options.Name = options.Environment["COMPOSE_PROJECT_NAME"]
	}
	return func(o *loader.Options) {
		if options.Name != "" {
			o.SetProjectName(options.Name, true)
		} else {
			o.SetProjectName(loader.NormalizeProjectName(filepath.Base(options.WorkingDir)), false)
		}
	}
}

// supportedPaths returns the attributes that need no report.
func (c *converter) supportedPaths() []tree.Path {
	var list []tree.Path
	for _, path := range schema.AttributePaths() {
		if a, ok := c.rows.find(string(path)); ok && a.level == supported {
			list = append(list, path)
		}
	}
	return list
}

// checkAttributes reports the attributes that have no effect or are refused. Services of profiles that are
// not active do not count.
func (c *converter) checkAttributes() {
	for _, found := range c.findings {
		path := strings.Split(string(found.Path), ".")
		a, known := c.rows.find(string(found.Path))
		if _, inactive := c.project.DisabledServices[path[min(1, len(path)-1)]]; inactive && path[0] == "services" {
			continue
		}
		for i := range path {
			path[i] = strings.ReplaceAll(path[i], "👻", ".") // the library's form of a dot in a key
		}
		switch {
		case !known || a.level == refused:
			note := a.note
			if !known {
				note = "this version of podrun does not have it"
			}
			c.refuse(path, "is refused: %s", note)
		case a.level == accepted:
			c.warn(path, "has no effect: %s", a.note)
		}
	}
}

// refuse reports an attribute that cannot be converted.
func (c *converter) refuse(path []string, format string, args ...any) {
	c.problems = append(c.problems, c.message(path, format, args...))
}

// warn reports an attribute without effect.
func (c *converter) warn(path []string, format string, args ...any) {
	c.warnings = append(c.warnings, c.message(path, format, args...))
}

func (c *converter) message(path []string, format string, args ...any) api.Message {
	position := c.files.find(path...)
	return api.Message{File: position.file, Line: position.line, Path: strings.Join(path, "."), Text: fmt.Sprintf(format, args...)}
}

// located returns an error of the library with the position of the attribute that it names.
func (c *converter) located(err error) api.Message {
	text := err.Error()
	for _, f := range c.files.main {
		text = strings.ReplaceAll(text, "validating "+f.path+": ", "")
	}
	m := api.Message{Text: text}
	text = strings.ReplaceAll(text, " false schema", " is not an attribute of the compose specification")
	m.Text = text
	words := regexp.MustCompile(`^(?:service "([^"]+)"|((?:services|networks|volumes|secrets|configs)\.[^ :]+))`).FindStringSubmatch(text)
	if words == nil {
		if len(c.files.main) > 0 {
			m.File = c.files.names[c.files.main[0].path]
		}
		return m
	}
	path := []string{"services", words[1]}
	if words[1] == "" {
		path = strings.Split(words[2], ".")
	}
	position := c.files.find(path...)
	m.File, m.Line = position.file, position.line
	return m
}

// result returns the objects, or what is wrong, in the order of the files.
func (c *converter) result() api.Result {
	r := api.Result{Warnings: c.ordered(c.warnings), Problems: c.ordered(c.problems)}
	c.describe(&r)
	if len(r.Problems) > 0 {
		return r
	}
	text, err := encode(c.objects)
	if err != nil {
		r.Problems = []api.Message{{Text: "cannot write the objects: " + err.Error()}}
	}
	r.Manifest = text
	if c.request.Model {
		r.Model = c.model()
	}
	return r
}

// ordered sorts messages by their position, each once: the files in the order in which they are merged, then those that
// they name.
func (c *converter) ordered(list []api.Message) []api.Message {
	place := func(m api.Message) int {
		i := slices.IndexFunc(c.files.main, func(f *source) bool { return c.files.names[f.path] == m.File })
		if i < 0 {
			return len(c.files.main)
		}
		return i
	}
	slices.SortStableFunc(list, func(a, b api.Message) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	return slices.Compact(list)
}
