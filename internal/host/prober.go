package host

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// Setup describes the caller.
type Setup struct {
	Data, Runtime    string                 // podrun's two directories, absolute; they need not exist
	DirsErr          error                  // why the two are unknown
	Trusted          func(dir string) error // refuses one of the two that exists and that others could write to; may be nil
	Timeout          time.Duration          // of all probes together; 0 means the constant Timeout
	RuntimeDefault   bool                   // XDG_RUNTIME_DIR is not set, so Runtime is a default
	Program          string                 // path of the podrun program, for hints; may be empty
	AfterCgroupProbe func()                 // called once processes may be started; may be nil
	Built            time.Time              // build time: a correct clock is later; may be zero
	UsernsEntered    func() bool            // whether a process that the caller has started is root of a user namespace; may be nil
}

// prober is the machine as the probes read it.
type prober struct {
	Setup
	root string // "" or a fake root directory
	uid  int
	user string   // the name of uid; "" if it has none
	path []string // search path of programs
	now  time.Time

	fork     func() error                                 // tries to make a user namespace
	tool     func(path string) (privilegedProgram, error) // reads a program's privileges
	limit    func() (cgroupPlace, error)                  // finds the future cgroups of pods
	uname    func() (release, machine string, _ error)
	calls    func() []syscallProbe                 // tries system calls
	statfs   func(path string) (FileSystem, error) // reads a file system
	writable func(dir string) error                // checks write and search permission, and writes
	openTun  func(path string) error
	synced   func() bool // a time service keeps the kernel's clock right
}

func newProber(s Setup) prober {
	v := prober{
		Setup: s, uid: os.Geteuid(), path: filepath.SplitList(os.Getenv("PATH")), now: time.Now(),
		fork: forkUserns, tool: statProgram, uname: uname, calls: tryCalls, statfs: StatFS, openTun: openTun, synced: synced,
	}
	v.limit = findCgroupPlace
	v.writable = func(dir string) error {
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return err
		}
		return rawsys.TryWrite(dir)
	}
	if u, err := user.LookupId(strconv.Itoa(v.uid)); err == nil {
		v.user = u.Username
	}
	return v
}

// read returns the trimmed text of a file; ok is false if it is missing.
func (v prober) read(path string) (text string, ok bool) {
	b, err := os.ReadFile(v.root + path)
	return strings.TrimSpace(string(b)), err == nil
}

// exists reports whether a path exists. A path that cannot be checked counts as existing.
func (v prober) exists(path string) bool {
	_, err := os.Lstat(v.root + path)
	return !errors.Is(err, os.ErrNotExist)
}

func (v prober) sysctl(name string) string {
	text, _ := v.read("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return text
}

// status returns a value of /proc/self/status.
func (v prober) status(key string) string {
	text, _ := v.read("/proc/self/status")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// name returns the user's name, or its number if it has none.
func (v prober) name() string {
	if v.user == "" {
		return strconv.Itoa(v.uid)
	}
	return v.user
}

// systemd reports whether systemd runs this machine: sd_booted(3).
func (v prober) systemd() bool { return v.exists("/run/systemd/system") }
