// Package wire defines what the commands and a pod's supervisor say to each
// other over the pod's control socket, and the names of inherited descriptors.
//
// One connection carries one Request with the descriptors it needs attached
// (SCM_RIGHTS); then messages in both directions: Frames from the supervisor,
// Controls from the client. The connection's end ends the request.
package wire

import (
	"encoding/json"
	"time"

	"github.com/podrun/podrun/pod"
)

// Verb names a request.
type Verb string

const (
	Stop Verb = "stop" // stop the pod; Frames: none until the pod has ended, then EOF
	Exec Verb = "exec" // run a process in a container; descriptors: stdin, stdout, stderr (pipes)
	// Notify makes the client's ends those of the front that serves systemd for the pod;
	// descriptors: a SOCK_SEQPACKET socket for messages (WatchdogMessage, StatusMessage), and
	// one for the containers' output, if it is wanted. One Frame with Status answers.
	Notify Verb = "attach"
	// Attach attaches the client to a container's streams; descriptors: what its output is to
	// be copied to, one pipe or, for one without a terminal, two. A Frame with Started brings
	// the write end of its input, or its terminal's master; Exit tells its end.
	Attach Verb = "join"
	// Apply gives the pod another Plan, which differs in resources or in containers with
	// another revision. One Frame, Applied or Error, answers.
	Apply Verb = "apply"
	// Kill sends a signal to containers' processes. One Frame, Applied or Error, answers.
	Kill Verb = "kill"
	// Pause has the containers' processes do nothing, or go on. One Frame, Applied or Error,
	// answers when that is so.
	Pause Verb = "pause"
	// SetCondition sets a condition of the pod that is not podrun's own. One Frame,
	// Applied or Error, answers.
	SetCondition Verb = "setCondition"
	// Changed tells that an object which the pod refers to has been made, changed or
	// deleted. One Frame, Applied, answers when it has been looked at. A pod that waits for its
	// images tries to pull them at once.
	Changed Verb = "changed"

	// Copy carries files into a container or out of it as a stream of tar; descriptor: the
	// pipe that it comes from or goes to. One Frame, Copied or Error, answers at its end.
	Copy Verb = "copy"
	// Connect asks for a connection to the pod's localhost. One Frame answers: Started with
	// the connected socket, or Error.
	Connect Verb = "connect"

	Watch Verb = "watch" // a Frame with Status now and at every change, until the pod has ended
)

// Request is the first message of a connection.
type Request struct {
	Verb   Verb           `json:"verb"`
	Stop   *StopRequest   `json:"stop,omitempty"`
	Exec   *ExecRequest   `json:"exec,omitempty"`
	Notify *NotifyRequest `json:"attach,omitempty"`
	Attach *AttachRequest `json:"join,omitempty"`
	Copy   *CopyRequest   `json:"copy,omitempty"`
	Apply  *ApplyRequest  `json:"apply,omitempty"`

	Kill      *KillRequest      `json:"kill,omitempty"`
	Pause     *PauseRequest     `json:"pause,omitempty"`
	Condition *ConditionRequest `json:"condition,omitempty"`
	Connect   *ConnectRequest   `json:"connect,omitempty"`
	Changed   *ChangedRequest   `json:"changed,omitempty"`
}

// ConnectRequest names a port of TCP inside the pod.
type ConnectRequest struct {
	Port int `json:"port"`
}

// KillRequest names containers that run; none means all of them.
type KillRequest struct {
	Containers []string `json:"containers,omitempty"`
	Signal     int      `json:"signal"` // by number
}

// PauseRequest says whether the containers are to do nothing, or to go on.
type PauseRequest struct {
	Paused bool `json:"paused"`
}

// ConditionRequest is a condition to be set. Status is True, False or Unknown.
type ConditionRequest struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ChangedRequest names an object of the pod's namespace.
type ChangedRequest struct {
	Kind pod.ObjectKind `json:"kind"`
	Name string         `json:"name"`
}

// ApplyRequest is a Plan for a pod that runs, with the manifest that it was made from. The
// Plan is one that is encoded: who sends or reads another request would find out about all of
// its types for nothing, which takes encoding/json a millisecond.
type ApplyRequest struct {
	Plan     json.RawMessage `json:"plan"`     // a pod.Plan
	Manifest json.RawMessage `json:"manifest"` // as store.Pod.Create takes it
}

// NotifyRequest is how a front that serves systemd is to be told of the pod.
type NotifyRequest struct {
	Every time.Duration `json:"every"`           // between two messages that the supervisor lives
	Label string        `json:"label,omitempty"` // before the name of the container, in each line of the output
}

// Messages to a front that serves systemd, in sd_notify's words.
const (
	WatchdogMessage = "WATCHDOG=1"
	StatusMessage   = "STATUS=" // and how the pod is, in a few words
)

// StopRequest asks for the end of the pod. A later one may only shorten the grace.
type StopRequest struct {
	GraceSeconds *int64 `json:"graceSeconds,omitempty"` // nil: the pod's own
	Remove       bool   `json:"remove,omitempty"`       // the pod removes itself then, and keeps nothing for after a power cut; no later request takes that back
	Shutdown     bool   `json:"shutdown,omitempty"`     // with the machine: the pod is to go on when it is started again
}

// ExecRequest runs Args in a container. Without TTY three pipe descriptors come
// with the request (stdin, stdout, stderr); with TTY none do, and the first Frame
// brings the terminal's master.
type ExecRequest struct {
	Container string   `json:"container"`
	Args      []string `json:"args"`
	Env       []string `json:"env,omitempty"` // added to the container's
	Cwd       string   `json:"cwd,omitempty"`
	User      string   `json:"user,omitempty"` // as a Plan's container has it; "" is the container's
	TTY       bool     `json:"tty,omitempty"`
	Term      string   `json:"term,omitempty"` // the client's TERM, with TTY
	Rows      uint16   `json:"rows,omitempty"`
	Cols      uint16   `json:"cols,omitempty"`
}

// AttachRequest names a container that runs. Stdin asks for its input, FromStart for what it
// has written before, too.
type AttachRequest struct {
	Container string `json:"container"`
	Stdin     bool   `json:"stdin,omitempty"`
	FromStart bool   `json:"fromStart,omitempty"`
}

// CopyRequest says what is to be copied. Path is the container's; a relative one begins at
// its working directory.
type CopyRequest struct {
	Container string `json:"container"`
	Path      string `json:"path"`

	In     bool `json:"in,omitempty"`     // into the container, else out of it
	Whole  bool `json:"whole,omitempty"`  // in: the stream is a user's own, with any number of things
	Owners bool `json:"owners,omitempty"` // in: files belong to whom the stream says, else to the container's user
	Plain  bool `json:"plain,omitempty"`  // in: ordinary permissions instead of the stream's

	As string `json:"as,omitempty"` // out: its name in the stream; "." for what is in a directory
}

// CopyResult tells of a copy that is done. Skipped is what was left out, and why.
type CopyResult struct {
	Skipped []string `json:"skipped,omitempty"`
}

// Frame is one message from the supervisor; exactly one field is set.
type Frame struct {
	Status  *pod.Status    `json:"status,omitempty"`
	Started bool           `json:"started,omitempty"` // exec: the process runs; with TTY the master is attached; connect: the socket is; join: the client hears, its input is attached
	Exit    *int           `json:"exit,omitempty"`    // exec, join: its exit code, 128+n for a signal
	Applied bool           `json:"applied,omitempty"` // kill, pause, setCondition, changed: it is done; apply: it is done, and recorded; restarts may be under way
	Copied  *CopyResult    `json:"copied,omitempty"`
	Layer   *LayerProgress `json:"layer,omitempty"` // watch: of an image that the pod waits for; a client may ignore it
	Error   *Error         `json:"error,omitempty"` // the request failed; nothing follows
}

// LayerProgress is how far a layer of an image is that is being pulled. Status is one of the room image.
// Without a name it is the image, which is there.
type LayerProgress struct {
	Image  string `json:"image"`
	Layer  string `json:"layer"`
	Status string `json:"status"`
	Done   int64  `json:"done,omitempty"`
	Total  int64  `json:"total,omitempty"`
}

// Control is one message from the client while an exec runs, or it is attached. A client
// that goes away kills what it started.
type Control struct {
	Signal int  `json:"signal,omitempty"`
	Detach bool `json:"detach,omitempty"` // exec with TTY: what was started goes on without the client, which leaves
	EOF    bool `json:"eof,omitempty"`    // join: the client's input has ended; it goes on listening
}

// Error is a failed request. Code is the exit code the client ends with:
// 125 podrun's own failure, 126 not executable, 127 not found.
type Error struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Code    int    `json:"code"`
}
