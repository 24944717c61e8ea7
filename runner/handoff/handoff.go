package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Record is what a supervisor leaves to the next one, whether it hibernates or is killed. The state file has the
// supervisor's state; it is written before an intent is carried out and after every result. Pod init holds
// descriptors and exit statuses. The next supervisor is the same program: pod init executes its own.
type Record struct {
	PodInit        *podinit.Client // nil in a test: then nothing is left
	podInitProcess procfs.Process
	Exits          *ExitTracker
	path           string

	mu       sync.Mutex
	state    State
	written  []byte // content of the file
	spare    []byte // buffer for the next content
	observed []byte // buffer for the next Observed: see SaveObserved
	err      error  // first failure to write the file
}

// State is the content of the state file.
type State struct {
	Version      int
	Boot         string // boot id: times and processes are valid for this boot only
	Observed     []byte `json:"-"` // lifecycle.Observed, which follows the rest in the file
	PauseProcess procfs.Process
	Cgroup       string
	Warnings     []string
	Running      []RunningInstance
	Leftovers    []Instance          `json:",omitempty"` // without processes, but with mounts and files
	Notify       *wire.NotifyRequest // of the systemd notify target, if any
	Hibernation  Hibernation         // the latest
}

const stateVersion = 1

// RunningInstance is the record of an instance with a process, from before its program is executed until its
// exit has been applied.
type RunningInstance struct {
	Name    string
	Attempt int
	procfs.Process
	MountNS string
	Filter  string `json:",omitempty"` // key of its seccomp filter: filter.Key
	UID     int
	GID     int
	Groups  []int
	Streams []Stream // set by a supervisor that hibernates
	Stopped bool     // its stop signal was sent
}

// Instance names one run of a container.
type Instance struct {
	Name    string
	Attempt int
}

func stateFile(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "state.json") }

// New returns a Record that saves to the pod's directory and keeps descriptors in pod init.
func New(podInit *podinit.Client, p store.Pod) *Record {
	r := &Record{PodInit: podInit, Exits: newExitTracker(podInit), path: stateFile(p), state: State{Version: stateVersion, Boot: store.BootID()}}
	if podInit != nil {
		r.podInitProcess = parentPodInit()
	}
	return r
}

// Update changes the state and writes it, so that it survives the death of this process. If the file cannot
// be written (disk full), the pod goes on, and a later supervisor may have to restart containers. If pod init
// is gone, Update ends this process: the sandbox is ending, and the next pod init's supervisor has to report
// that, instead of the failures that follow from it.
func (r *Record) Update(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
	if r.PodInit == nil {
		return
	}
	if r.podInitProcess.Exiting() {
		os.Exit(1)
	}
	b, err := r.state.appendTo(r.spare[:0])
	if r.spare = b; err == nil && !bytes.Equal(b, r.written) {
		if err = store.WriteVolatile(r.path, b); err == nil {
			r.written, r.spare = b, r.written
		}
	}
	if err != nil && r.err == nil {
		r.err = err
		fmt.Fprintln(os.Stderr, "record the pod's state:", err)
	}
}

// appendTo appends the state to b in the file's format.
func (s *State) appendTo(b []byte) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	err := json.NewEncoder(buf).Encode(s)
	buf.Write(s.Observed)
	return buf.Bytes(), err
}

// decode parses the file's format.
func (s *State) decode(b []byte) (o lifecycle.Observed, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if err = d.Decode(s); err == nil && s.Version != stateVersion {
		err = errOtherVersion
	}
	if err == nil && s.Boot != store.BootID() {
		err = ErrOtherBoot
	}
	var text json.RawMessage
	if err == nil {
		err = d.Decode(&text)
	}
	if err == nil {
		s.Observed = text
		err = json.Unmarshal(text, &o)
	}
	return o, err
}

// BootID returns the boot id of the machine.
func (r *Record) BootID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Boot
}

// Failed reports whether a write of the file has failed, so that it may lack the latest state.
func (r *Record) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// Warning returns the consequence of a failure to record, or "".
func (r *Record) Warning() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return ""
	}
	return fmt.Sprintf("the pod's state cannot be recorded, its containers may be started again if its supervisor ends: %v", r.err)
}

// SaveObserved records what is observed of the pod. Instances whose exit is thereby recorded become leftovers. Only the loop
// calls it.
func (r *Record) SaveObserved(o *lifecycle.Observed) error {
	buf := bytes.NewBuffer(r.observed[:0])
	if err := json.NewEncoder(buf).Encode(o); err != nil {
		return fmt.Errorf("encode the state of the pod: %w", err)
	}
	r.Update(func(s *State) {
		s.Observed, r.observed = buf.Bytes(), s.Observed
		for _, run := range s.Running {
			if !IsLive(o, run.Name, run.Attempt) {
				s.Leftovers = append(s.Leftovers, Instance{run.Name, run.Attempt})
			}
		}
		s.Running = slices.DeleteFunc(s.Running, func(run RunningInstance) bool { return !IsLive(o, run.Name, run.Attempt) })
	})
	return nil
}

// ForgetInstance drops a leftover that is removed completely. The change is written with the next Update:
// removing an instance twice does no harm.
func (r *Record) ForgetInstance(in Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Leftovers = slices.DeleteFunc(slices.Clone(r.state.Leftovers), func(other Instance) bool { return other == in })
}

// IsLive reports whether an instance may have a process.
func IsLive(o *lifecycle.Observed, name string, attempt int) bool {
	c := o.Containers[name]
	return c != nil && c.Attempt == attempt && (c.State == lifecycle.RunStarting || c.State == lifecycle.RunRunning)
}

// AddRunning records a container's process.
func (r *Record) AddRunning(run RunningInstance) {
	r.Update(func(s *State) {
		s.Leftovers = slices.DeleteFunc(s.Leftovers, func(in Instance) bool { return in == Instance{run.Name, run.Attempt} })
		s.Running = append(s.Running, run)
	})
}

// UpdateRunning changes the record of a container's process, if there still is one.
func (r *Record) UpdateRunning(p procfs.Process, change func(*RunningInstance)) {
	r.Update(func(s *State) {
		for i := range s.Running {
			if s.Running[i].Process == p {
				change(&s.Running[i])
			}
		}
	})
}

// RemoveRunning removes the record that AddRunning has made of a process.
func (r *Record) RemoveRunning(p procfs.Process) {
	r.Update(func(s *State) {
		s.Running = slices.DeleteFunc(s.Running, func(run RunningInstance) bool { return run.Process == p })
	})
}

// Reset replaces the state of an earlier supervisor by an empty one, which it returns.
func (r *Record) Reset() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.written = State{Version: stateVersion, Boot: store.BootID()}, nil
	return r.state
}

// ErrOtherBoot means that the state is from before the last boot.
var ErrOtherBoot = errors.New("it was written before the machine was started")

// errOtherVersion means that this program cannot have written the state.
var errOtherVersion = errors.New("it was not written by this program")

// Load reads the state that an earlier supervisor has recorded.
func (r *Record) Load() (State, lifecycle.Observed, error) {
	var o lifecycle.Observed
	b, err := os.ReadFile(r.path)
	if err == nil {
		o, err = r.state.decode(b)
	}
	if err != nil {
		return State{}, o, fmt.Errorf("read the state of the previous supervisor: %w", err)
	}
	r.written = b
	return r.state, o, nil
}

// IsDamaged reports whether an error of reading a record is permanent, so that no other supervisor could
// read it either: the file is missing or its content is wrong. Other errors of the system may pass.
func IsDamaged(err error) bool {
	var errno unix.Errno
	return !errors.As(err, &errno) || errno == unix.ENOENT
}

// Hibernation is what a supervisor that hibernates leaves to the next one.
type Hibernation struct {
	Since        time.Duration // CLOCK_BOOTTIME
	Wake         time.Duration // CLOCK_BOOTTIME of the planned wake-up; 0: never
	Idle         time.Duration // idle time before it hibernated
	NotifyStatus string        // the latest sd_notify state

	Probes []lifecycle.SteadyProbe `json:",omitempty"` // which pod init runs, in the order of podinit.LatestSuccesses
}

// parentPodInit returns the process of this supervisor's pod init; zero if it has exited already, so that this
// process has another parent.
func parentPodInit() procfs.Process {
	st, ok := procfs.Lookup(podinit.PID())
	if !ok || st.Comm != protocol.CommPodInit {
		return procfs.Process{}
	}
	return st.Process
}

// Stream is an output of a container whose supervisor hibernates.
type Stream struct {
	Name string
	Rest []byte
}
