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
)

// Setup is what the caller knows of itself.
type Setup struct {
	Data, Runtime    string                 // podrun's two directories, absolute; they need not exist
	DirsErr          error                  // why the two are not known
	Trusted          func(dir string) error // refuses one of the two that exists and that others could write to; may be nil
	Timeout          time.Duration          // how long all probes together may take; 0 is Patience
	RuntimeDefault   bool                   // XDG_RUNTIME_DIR is not set, so Runtime was chosen for want of it
	Program          string                 // path of the podrun program, for what has to be said about it; may be empty
	AfterCgroupProbe func()                 // called when Check has seen what lives in the caller's cgroup: it may start processes; may be nil
	Built            time.Time              // when the program was built: no clock that is right shows an earlier time; may be zero
}

// prober is the machine as the probes see it.
type prober struct {
	Setup
	root string // "" or a fake root directory
	uid  int
	user string   // the name of uid; "" if it has none
	path []string // where programs are looked for
	now  time.Time

	fork     func() error                                 // tries a user namespace for real
	tool     func(path string) (privilegedProgram, error) // looks at a program
	limit    func() (cgroupPlace, error)                  // finds where pods will have their cgroups
	uname    func() (release, machine string, _ error)
	calls    func() []syscallProbe                 // tries system calls
	statfs   func(path string) (FileSystem, error) // looks at a file system
	writable func(dir string) error                // asks for write and search permission
	openTun  func(path string) error
	synced   func() bool // the kernel's clock is kept right by somebody
}

func newProber(s Setup) prober {
	v := prober{
		Setup: s, uid: os.Geteuid(), path: filepath.SplitList(os.Getenv("PATH")), now: time.Now(),
		fork: forkUserns, tool: statProgram, uname: uname, calls: tryCalls, statfs: StatFS, openTun: openTun, synced: synced,
	}
	v.limit = findCgroupPlace
	v.writable = func(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
	if u, err := user.LookupId(strconv.Itoa(v.uid)); err == nil {
		v.user = u.Username
	}
	return v
}

// read gives the trimmed text of a file; ok is false if it is not there.
func (v prober) read(path string) (text string, ok bool) {
	b, err := os.ReadFile(v.root + path)
	return strings.TrimSpace(string(b)), err == nil
}

// exists says whether a path is there, or may be: one that cannot be looked at is.
func (v prober) exists(path string) bool {
	_, err := os.Lstat(v.root + path)
	return !errors.Is(err, os.ErrNotExist)
}

func (v prober) sysctl(name string) string {
	text, _ := v.read("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return text
}

// status is a line of /proc/self/status.
func (v prober) status(key string) string {
	text, _ := v.read("/proc/self/status")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// name is the user's, or the number of one that has none.
func (v prober) name() string {
	if v.user == "" {
		return strconv.Itoa(v.uid)
	}
	return v.user
}

// systemd says whether systemd runs this machine: sd_booted(3).
func (v prober) systemd() bool { return v.exists("/run/systemd/system") }
