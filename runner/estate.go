package runner

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

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
)

// estate is what a supervisor leaves to the next one, whether it dozes off or is killed:
// in a file what it knows, written before an intention is carried out and after every
// result; with the keeper descriptors and the ends of processes. The next one is of the
// same program: the keeper executes its own.
type estate struct {
	keeper *stage.Keeper // nil in a test: then nothing is left
	kept   process       // the keeper's
	ends   *ends
	path   string

	mu    sync.Mutex
	state state
	last  []byte // what the file says
	spare []byte // for what it says next
	text  []byte // for what is known next: observe's
	err   error  // the first failure to write it
}

// state is the written part.
type state struct {
	Version  int
	Boot     string // the machine's run: times and processes are of no other
	Observed []byte `json:"-"` // lifecycle.Observed, which follows the rest in the file
	Pause    process
	Cgroup   string
	Warnings []string
	Runs     []savedRun
	Remains  []instance          `json:",omitempty"` // no processes, but mounts and files
	Front    *wire.AttachRequest // of who serves systemd, if anybody
	Sleep    sleep               // the latest
}

const stateVersion = 1

// savedRun is a container that runs, from before its program is executed until its end
// has been folded.
type savedRun struct {
	Name    string
	Attempt int
	process
	MountNS string
	Filter  string `json:",omitempty"` // names that of its system calls: filter.Key
	UID     int
	GID     int
	Groups  []int
	Streams []savedStream // of a supervisor that dozed
	Stopped bool          // its stop signal was sent
}

// instance is one run of a container.
type instance struct {
	Name    string
	Attempt int
}

func stateFile(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "state.json") }

func newEstate(keeper *stage.Keeper, place store.Pod) *estate {
	e := &estate{keeper: keeper, ends: newEnds(keeper), path: stateFile(place), state: state{Version: stateVersion, Boot: store.BootID()}}
	if keeper != nil {
		e.kept = keeperOf()
	}
	return e
}

// record notes a change, durably against the death of this process. Without room for it
// the pod goes on, and a supervisor that follows may have to start containers again.
// Without a keeper it does not return: what is seen then is the sandbox's end, which the
// next keeper's supervisor tells, and not the failures that come of it.
func (e *estate) record(change func(*state)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.state)
	if e.keeper == nil {
		return
	}
	if e.kept.ending() {
		os.Exit(1)
	}
	b, err := e.state.appendTo(e.spare[:0])
	if e.spare = b; err == nil && !bytes.Equal(b, e.last) {
		if err = store.WriteVolatile(e.path, b); err == nil {
			e.last, e.spare = b, e.last
		}
	}
	if err != nil && e.err == nil {
		e.err = err
		fmt.Fprintln(os.Stderr, "record the pod's state:", err)
	}
}

// appendTo adds a state to b as it is in the file.
func (s *state) appendTo(b []byte) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	err := json.NewEncoder(buf).Encode(s)
	buf.Write(s.Observed)
	return buf.Bytes(), err
}

// read is the other way.
func (s *state) read(b []byte) (o lifecycle.Observed, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if err = d.Decode(s); err == nil && s.Version != stateVersion {
		err = errForeign
	}
	if err == nil && s.Boot != store.BootID() {
		err = errOtherBoot
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

// boot is the machine's run.
func (e *estate) boot() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state.Boot
}

// broken says whether what was recorded last is not the latest.
func (e *estate) broken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// warning says what a failure to record means, or "".
func (e *estate) warning() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		return ""
	}
	return fmt.Sprintf("the pod's state cannot be recorded, its containers may be started again if its supervisor dies: %v", e.err)
}

// observe records what is known of the pod. Ended runs that it tells of are over. The loop
// alone calls it.
func (e *estate) observe(o *lifecycle.Observed) error {
	buf := bytes.NewBuffer(e.text[:0])
	if err := json.NewEncoder(buf).Encode(o); err != nil {
		return fmt.Errorf("encode what is known of the pod: %w", err)
	}
	e.record(func(s *state) {
		s.Observed, e.text = buf.Bytes(), s.Observed
		for _, r := range s.Runs {
			if !live(o, r.Name, r.Attempt) {
				s.Remains = append(s.Remains, instance{r.Name, r.Attempt})
			}
		}
		s.Runs = slices.DeleteFunc(s.Runs, func(r savedRun) bool { return !live(o, r.Name, r.Attempt) })
	})
	return nil
}

// removed says that nothing is left of an instance. That is written with what is recorded
// next: to remove one twice does no harm.
func (e *estate) removed(in instance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Remains = slices.DeleteFunc(slices.Clone(e.state.Remains), func(r instance) bool { return r == in })
}

// live says whether a run is one that may have a process.
func live(o *lifecycle.Observed, name string, attempt int) bool {
	c := o.Containers[name]
	return c != nil && c.Attempt == attempt && (c.State == lifecycle.RunStarting || c.State == lifecycle.RunRunning)
}

// run records a container's process.
func (e *estate) run(r savedRun) {
	e.record(func(s *state) {
		s.Remains = slices.DeleteFunc(s.Remains, func(in instance) bool { return in == instance{r.Name, r.Attempt} })
		s.Runs = append(s.Runs, r)
	})
}

// rerun changes what is recorded of a container's process, if it still is.
func (e *estate) rerun(p process, change func(*savedRun)) {
	e.record(func(s *state) {
		for i := range s.Runs {
			if s.Runs[i].process == p {
				change(&s.Runs[i])
			}
		}
	})
}

// withdraw takes back what run has recorded of a process that is to be gone without a
// trace.
func (e *estate) withdraw(p process) {
	e.record(func(s *state) {
		s.Runs = slices.DeleteFunc(s.Runs, func(r savedRun) bool { return r.process == p })
	})
}

// begin forgets what was inherited.
func (e *estate) begin() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.last = state{Version: stateVersion, Boot: store.BootID()}, nil
	return e.state
}

// errOtherBoot is a state of before the machine was started.
var errOtherBoot = errors.New("it was written before the machine was started")

// errForeign is a state that this program cannot have written.
var errForeign = errors.New("it was not written by this program")

// inherit reads what another supervisor has recorded.
func (e *estate) inherit() (state, lifecycle.Observed, error) {
	var o lifecycle.Observed
	b, err := os.ReadFile(e.path)
	if err == nil {
		o, err = e.state.read(b)
	}
	if err != nil {
		return state{}, o, fmt.Errorf("read what the supervisor has left: %w", err)
	}
	e.last = b
	return e.state, o, nil
}

// damaged says of an error of reading a record that no other supervisor could do better:
// the system has not refused to read what is there.
func damaged(err error) bool {
	var errno unix.Errno
	return !errors.As(err, &errno) || errno == unix.ENOENT
}

// sleep is what a supervisor that dozes leaves to the next one.
type sleep struct {
	Since time.Duration // CLOCK_BOOTTIME
	Wake  time.Duration // CLOCK_BOOTTIME at which it wanted to wake; 0: never
	Quiet time.Duration // how long it was quiet before
	Said  string        // what the herald has said
}

// keeperOf is this supervisor's keeper: nobody, if that has ended already and another is
// the parent.
func keeperOf() process {
	st, ok := stat(stage.KeeperPID())
	if !ok || st.name != "podrun-keeper" {
		return process{}
	}
	return st.process
}

// savedStream is an output of a container whose supervisor dozes.
type savedStream struct {
	Name string
	Rest []byte
}
