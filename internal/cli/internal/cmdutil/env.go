// Package cmdutil has what all commands run with: Env with streams and host dependencies, shared flags,
// and signals.
package cmdutil

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// WriteSafe writes untrusted text unchanged for programs. On a terminal it escapes every control sequence
// except colours.
func (env *Env) WriteSafe(text []byte) error {
	if _, is := tty.File(env.Out); is {
		var safe []byte
		for line := range bytes.Lines(text) {
			rest, ended := bytes.CutSuffix(line, []byte("\n"))
			safe = append(safe, tty.Safe(rest)...)
			if ended {
				safe = append(safe, '\n')
			}
		}
		text = safe
	}
	_, err := env.Out.Write(text)
	return err
}

// PrintTable prints rows in columns.
func (env *Env) PrintTable(rows [][]string) error { return (&podview.Table{}).Print(env.Out, rows) }

// Env is one invocation: its streams, its environment, and its dependencies. Tests put fakes into it.
type Env struct {
	Getenv      func(string) string
	In          io.Reader
	Out, ErrOut io.Writer
	Deps        Deps
	Signals     func(...os.Signal) (arrived <-chan os.Signal, stop func())

	PullBackOff   func(attempt int) time.Duration
	WaitHintAfter time.Duration
	GoneTime      time.Duration // how long an old pod without a Plan may hold its lock

	Namespace     string // for objects without one
	NamespaceFlag string // the value of -n, "" if not given
	Policy        string // the value of --policy, "" if not given

	Pull         image.PullOptions // how registries are reached for artifacts with manifests
	ArtifactPath string            // --path: the directory in an artifact or a directory; "": all of it
	AllowRemote  bool              // --allow-remote: kustomizations may have remote bases
	EnvFiles     []string          // --env-file: variables for manifests and compose files
	Compose      Compose           // for compose files

	Changed *ChangedObjects // objects that the command changed, for -o; nil until known

	Main func(*Env, []string) int // runs a command line, and returns its exit code
}

// New returns the environment of a process of podrun.
func New(getenv func(string) string, deps Deps, in io.Reader, out, errOut io.Writer) *Env {
	return &Env{Getenv: getenv, In: in, Out: out, ErrOut: errOut, Deps: deps, Signals: podclient.Signals, PullBackOff: pullBackOff, WaitHintAfter: waitHintAfter, GoneTime: podclient.GoneTime}
}

// RunAgain runs another command of podrun, with the same streams. Its error, if any, is already reported.
func (env *Env) RunAgain(words ...string) error {
	inner := *env
	if code := env.Main(&inner, slices.Concat([]string{"podrun"}, words)); code != exitcode.OK {
		return &exitcode.Error{Code: code}
	}
	return nil
}

// Dirs returns podrun's directories.
func (env *Env) Dirs() (store.Dirs, error) { return store.UserDirs(env.Getenv) }

// ConfigHome returns the directory of the user's configuration (XDG Base Directory Specification). Without XDG_CONFIG_HOME and
// HOME it is not absolute.
func (env *Env) ConfigHome() string {
	return cmp.Or(env.Getenv("XDG_CONFIG_HOME"), filepath.Join(env.Getenv("HOME"), ".config"))
}

// ImageStore opens the image store.
func (env *Env) ImageStore() (*image.Store, error) {
	dirs, err := env.Dirs()
	if err != nil {
		return nil, err
	}
	return OpenImages(dirs)
}

// OpenImages opens the image store.
func OpenImages(dirs store.Dirs) (*image.Store, error) {
	return image.Open(dirs.ImagesDir(), imageProgram(dirs))
}

// ImageProgram returns the image program, for what needs no store.
func (env *Env) ImageProgram() (*image.Program, error) {
	dirs, err := env.Dirs()
	return imageProgram(dirs), err
}

func imageProgram(dirs store.Dirs) *image.Program {
	return image.NewProgram(func() (string, func(), error) { return programs.Image(dirs) })
}

// Warn writes an error to stderr as a warning.
func (env *Env) Warn(err error) {
	fmt.Fprintln(env.ErrOut, report.Escape("podrun: warning: "+err.Error()))
}

// ChangedObjects are the objects that a command has created or changed.
type ChangedObjects struct {
	Dirs  store.Dirs
	Names []kindnames.Query
}

// EndInterruptLine ends the line on which a terminal has just shown ^C.
func (env *Env) EndInterruptLine() {
	if _, terminal := tty.File(env.ErrOut); terminal {
		fmt.Fprintln(env.ErrOut)
	}
}

// pullBackOff returns how long to wait before the next attempt after a number of failed ones.
func pullBackOff(attempt int) time.Duration {
	return min(firstPullBackOff<<min(attempt, 10), lastPullBackOff)
}

// The kubelet's back-off of image pulls (pkg/kubelet: MaxContainerBackOff, imageBackOff).
const (
	firstPullBackOff = 10 * time.Second
	lastPullBackOff  = 5 * time.Minute
)

// waitHintAfter is how long a command waits for a pod before it prints what it waits for, and the
// interval at which it checks whether that has changed.
const waitHintAfter = 10 * time.Second

// BoolToInt returns 1 for true, and 0 for false.
func BoolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// RandomSuffix returns a random suffix that makes a name probably unique, of kubectl's letters.
func RandomSuffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b [5]byte
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b[:])
}
