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

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
)

// Store is what a supervisor leaves to the next one, whether it dozes off or is killed:
// in a file what it knows, written before an intention is carried out and after every
// result; with the keeper descriptors and the ends of processes. The next one is of the
// same program: the keeper executes its own.
type Store struct {
	PodInit *podinit.Client // nil in a test: then nothing is left
	podInit procfs.Process  // the keeper's
	Exits   *ExitTracker
	path    string

	mu       sync.Mutex
	state    State
	written  []byte // what the file says
	spare    []byte // for what it says next
	observed []byte // for what is known next: observe's
	err      error  // the first failure to write it
}

// State is the written part.
type State struct {
	Version     int
	Boot        string // the machine's run: times and processes are of no other
	Observed    []byte `json:"-"` // lifecycle.Observed, which follows the rest in the file
	Pause       procfs.Process
	Cgroup      string
	Warnings    []string
	Runs        []Run
	Leftovers   []Instance          `json:",omitempty"` // no processes, but mounts and files
	Notify      *wire.NotifyRequest // of who serves systemd, if anybody
	Hibernation Hibernation         // the latest
}

const stateVersion = 1

// Run is a container that runs, from before its program is executed until its end
// has been folded.
type Run struct {
	Name    string
	Attempt int
	procfs.Process
	MountNS string
	Filter  string `json:",omitempty"` // names that of its system calls: filter.Key
	UID     int
	GID     int
	Groups  []int
	Streams []Stream // of a supervisor that dozed
	Stopped bool     // its stop signal was sent
}

// Instance is one run of a container.
type Instance struct {
	Name    string
	Attempt int
}

func stateFile(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "state.json") }

// New returns a Store that saves to the pod's place and keeps descriptors in the pod init.
func New(keeper *podinit.Client, place store.Pod) *Store {
	e := &Store{PodInit: keeper, Exits: newExitTracker(keeper), path: stateFile(place), state: State{Version: stateVersion, Boot: store.BootID()}}
	if keeper != nil {
		e.podInit = parentPodInit()
	}
	return e
}

// Update notes a change, durably against the death of this process. Without room for it
// the pod goes on, and a supervisor that follows may have to start containers again.
// Without a keeper it does not return: what is seen then is the sandbox's end, which the
// next keeper's supervisor tells, and not the failures that come of it.
func (e *Store) Update(change func(*State)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.state)
	if e.PodInit == nil {
		return
	}
	if e.podInit.Exiting() {
		os.Exit(1)
	}
	b, err := e.state.appendTo(e.spare[:0])
	if e.spare = b; err == nil && !bytes.Equal(b, e.written) {
		if err = store.WriteVolatile(e.path, b); err == nil {
			e.written, e.spare = b, e.written
		}
	}
	if err != nil && e.err == nil {
		e.err = err
		fmt.Fprintln(os.Stderr, "record the pod's state:", err)
	}
}

// appendTo adds a state to b as it is in the file.
func (s *State) appendTo(b []byte) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	err := json.NewEncoder(buf).Encode(s)
	buf.Write(s.Observed)
	return buf.Bytes(), err
}

// decode is the other way.
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

// BootID is the machine's run.
func (e *Store) BootID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Boot
}

// Failed says whether what was recorded last is not the latest.
func (e *Store) Failed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// Warning says what a failure to record means, or "".
func (e *Store) Warning() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		return ""
	}
	return fmt.Sprintf("the pod's state cannot be recorded, its containers may be started again if its supervisor dies: %v", e.err)
}

// SaveObserved records what is known of the pod. Ended runs that it tells of are over. The loop
// alone calls it.
func (e *Store) SaveObserved(o *lifecycle.Observed) error {
	buf := bytes.NewBuffer(e.observed[:0])
	if err := json.NewEncoder(buf).Encode(o); err != nil {
		return fmt.Errorf("encode what is known of the pod: %w", err)
	}
	e.Update(func(s *State) {
		s.Observed, e.observed = buf.Bytes(), s.Observed
		for _, r := range s.Runs {
			if !IsLive(o, r.Name, r.Attempt) {
				s.Leftovers = append(s.Leftovers, Instance{r.Name, r.Attempt})
			}
		}
		s.Runs = slices.DeleteFunc(s.Runs, func(r Run) bool { return !IsLive(o, r.Name, r.Attempt) })
	})
	return nil
}

// ForgetInstance says that nothing is left of an instance. That is written with what is recorded
// next: to remove one twice does no harm.
func (e *Store) ForgetInstance(in Instance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Leftovers = slices.DeleteFunc(slices.Clone(e.state.Leftovers), func(r Instance) bool { return r == in })
}

// IsLive says whether a run is one that may have a process.
func IsLive(o *lifecycle.Observed, name string, attempt int) bool {
	c := o.Containers[name]
	return c != nil && c.Attempt == attempt && (c.State == lifecycle.RunStarting || c.State == lifecycle.RunRunning)
}

// AddRun records a container's process.
func (e *Store) AddRun(r Run) {
	e.Update(func(s *State) {
		s.Leftovers = slices.DeleteFunc(s.Leftovers, func(in Instance) bool { return in == Instance{r.Name, r.Attempt} })
		s.Runs = append(s.Runs, r)
	})
}

// UpdateRun changes what is recorded of a container's process, if it still is.
func (e *Store) UpdateRun(p procfs.Process, change func(*Run)) {
	e.Update(func(s *State) {
		for i := range s.Runs {
			if s.Runs[i].Process == p {
				change(&s.Runs[i])
			}
		}
	})
}

// RemoveRun takes back what run has recorded of a process that is to be gone without a
// trace.
func (e *Store) RemoveRun(p procfs.Process) {
	e.Update(func(s *State) {
		s.Runs = slices.DeleteFunc(s.Runs, func(r Run) bool { return r.Process == p })
	})
}

// Reset forgets what was inherited.
func (e *Store) Reset() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.written = State{Version: stateVersion, Boot: store.BootID()}, nil
	return e.state
}

// ErrOtherBoot is a state of before the machine was started.
var ErrOtherBoot = errors.New("it was written before the machine was started")

// errOtherVersion is a state that this program cannot have written.
var errOtherVersion = errors.New("it was not written by this program")

// Load reads what another supervisor has recorded.
func (e *Store) Load() (State, lifecycle.Observed, error) {
	var o lifecycle.Observed
	b, err := os.ReadFile(e.path)
	if err == nil {
		o, err = e.state.decode(b)
	}
	if err != nil {
		return State{}, o, fmt.Errorf("read the state of the previous supervisor: %w", err)
	}
	e.written = b
	return e.state, o, nil
}

// IsDamaged says of an error of reading a record that no other supervisor could do better:
// the system has not refused to read what is there.
func IsDamaged(err error) bool {
	var errno unix.Errno
	return !errors.As(err, &errno) || errno == unix.ENOENT
}

// Hibernation is what a supervisor that dozes leaves to the next one.
type Hibernation struct {
	Since        time.Duration // CLOCK_BOOTTIME
	Wake         time.Duration // CLOCK_BOOTTIME at which it wanted to wake; 0: never
	Idle         time.Duration // how long it was quiet before
	NotifyStatus string        // what the herald has said
}

// parentPodInit is this supervisor's keeper: nobody, if that has ended already and another is
// the parent.
func parentPodInit() procfs.Process {
	st, ok := procfs.Lookup(podinit.PID())
	if !ok || st.Comm != "podrun-podinit" {
		return procfs.Process{}
	}
	return st.Process
}

// Stream is an output of a container whose supervisor dozes.
type Stream struct {
	Name string
	Rest []byte
}
