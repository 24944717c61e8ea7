// Package wire defines the messages between the commands and a pod's supervisor over the pod's
// control socket.
//
// One connection carries one Request with the descriptors that it needs (SCM_RIGHTS), then messages
// in both directions: Frames from the supervisor, Controls from the client. The end of the
// connection ends the request.
package wire

import (
	"encoding/json"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Verb names a request.
type Verb string

const (
	Stop Verb = "stop" // stop the pod; Frames: none until the pod has ended, then EOF
	Exec Verb = "exec" // run a process in a container; descriptors: stdin, stdout, stderr (pipes)
	// Notify makes the supervisor notify the client, the main process of the pod's systemd unit;
	// descriptors: a SOCK_SEQPACKET socket for messages (protocol.NotifyWatchdog, NotifyStatus) and, if
	// wanted, one for the containers' output. One Frame with Status answers.
	Notify Verb = "notify"
	// Attach attaches the client to a container's streams; descriptors: where its output is copied
	// to, one pipe or, without a terminal, two. A Frame with Started brings the write end of its
	// input, or its terminal's master; Exit reports its end.
	Attach Verb = "attach"
	// Apply gives the pod another Plan, which differs in resources or in containers with another
	// revision. One Frame, Applied or Error, answers.
	Apply Verb = "apply"
	// Kill sends a signal to containers' processes. One Frame, Applied or Error, answers.
	Kill Verb = "kill"
	// Pause freezes or thaws the containers' processes. One Frame, Applied or Error, answers when
	// that is done.
	Pause Verb = "pause"
	// SetCondition sets a condition of the pod that podrun does not set itself. One Frame, Applied
	// or Error, answers.
	SetCondition Verb = "setCondition"
	// Changed reports that an object which the pod refers to has been created, changed or deleted.
	// One Frame, Applied, answers when the supervisor has read the object. A pod that waits for its
	// images tries to pull them at once.
	Changed Verb = "changed"

	// DiskUsage counts what the pod has on disk. One Frame, DiskUsage or Error, answers.
	DiskUsage Verb = "diskUsage"

	// Copy copies files into a container or out of it as a tar stream; descriptor: the pipe for the
	// stream. One Frame, Copied or Error, answers at its end.
	Copy Verb = "copy"
	// Connect connects to the pod's localhost. One Frame answers: Started with the connected
	// socket, or Error.
	Connect Verb = "connect"

	Watch Verb = "watch" // a Frame with Status now and at every change, until the pod has ended
)

// Request is the first message of a connection.
type Request struct {
	Verb   Verb           `json:"verb"`
	Stop   *StopRequest   `json:"stop,omitempty"`
	Exec   *ExecRequest   `json:"exec,omitempty"`
	Notify *NotifyRequest `json:"notify,omitempty"`
	Attach *AttachRequest `json:"attach,omitempty"`
	Copy   *CopyRequest   `json:"copy,omitempty"`
	Apply  *ApplyRequest  `json:"apply,omitempty"`

	Kill      *KillRequest      `json:"kill,omitempty"`
	Pause     *PauseRequest     `json:"pause,omitempty"`
	Condition *ConditionRequest `json:"condition,omitempty"`
	Connect   *ConnectRequest   `json:"connect,omitempty"`
	Changed   *ChangedRequest   `json:"changed,omitempty"`
}

// ConnectRequest names a TCP port inside the pod.
type ConnectRequest struct {
	Port int `json:"port"`
}

// KillRequest names running containers; an empty list means all of them.
type KillRequest struct {
	Containers []string `json:"containers,omitempty"`
	Signal     int      `json:"signal"` // by number
}

// PauseRequest selects whether to freeze or to thaw the containers.
type PauseRequest struct {
	Paused bool `json:"paused"`
}

// ConditionRequest is a condition to set. Status is True, False or Unknown.
type ConditionRequest struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ChangedRequest names an object that concerns the pod: one of its namespace, a Namespace, or a Service
// of any namespace.
type ChangedRequest struct {
	Kind pod.ObjectKind `json:"kind"`
	Name string         `json:"name"`
}

// ApplyRequest is a Plan for a running pod, with the manifest that it was made from. The Plan is
// encoded JSON: otherwise encoding/json would analyse all of its types for every other request,
// which takes a millisecond.
type ApplyRequest struct {
	Plan     json.RawMessage `json:"plan"`     // a pod.Plan
	Manifest json.RawMessage `json:"manifest"` // as for store.Pod.Create
}

// NotifyRequest selects what the main process of the pod's systemd unit receives about the pod.
type NotifyRequest struct {
	Every time.Duration `json:"every"`           // interval of the supervisor's watchdog messages
	Label string        `json:"label,omitempty"` // prefix of the container's name in each line of the output
}

// StopRequest requests the end of the pod. A later one may only shorten the grace period.
type StopRequest struct {
	GraceSeconds *int64 `json:"graceSeconds,omitempty"` // nil: the pod's own
	Remove       bool   `json:"remove,omitempty"`       // the pod then removes itself, without durable writes; irrevocable
	Shutdown     bool   `json:"shutdown,omitempty"`     // the machine shuts down: the pod resumes after the next boot
	Evicted      string `json:"evicted,omitempty"`      // the message of a pod that its node evicts
}

// ExecRequest runs Args in a container. Without TTY, three pipe descriptors come with the request
// (stdin, stdout, stderr). With TTY there are none, and the first Frame brings the terminal's
// master.
type ExecRequest struct {
	Container string   `json:"container"`
	Args      []string `json:"args"`
	Env       []string `json:"env,omitempty"` // added to the container's
	Cwd       string   `json:"cwd,omitempty"`
	User      string   `json:"user,omitempty"` // in the format of a Plan; "" is the container's user
	TTY       bool     `json:"tty,omitempty"`
	Term      string   `json:"term,omitempty"` // the client's TERM, with TTY
	Rows      uint16   `json:"rows,omitempty"`
	Cols      uint16   `json:"cols,omitempty"`
}

// AttachRequest names a running container. Stdin requests its input, FromStart also its earlier
// output.
type AttachRequest struct {
	Container string `json:"container"`
	Stdin     bool   `json:"stdin,omitempty"`
	FromStart bool   `json:"fromStart,omitempty"`
}

// CopyRequest describes a copy. Path is a path in the container; a relative one begins at its
// working directory.
type CopyRequest struct {
	Container string `json:"container"`
	Path      string `json:"path"`

	In     bool `json:"in,omitempty"`     // into the container, otherwise out of it
	Tar    bool `json:"whole,omitempty"`  // in: it is the user's own tar stream, with any number of files; else one file or directory
	Owners bool `json:"owners,omitempty"` // in: keep the stream's owners, else the container's user
	Plain  bool `json:"plain,omitempty"`  // in: ordinary permissions instead of the stream's

	Changes bool `json:"changes,omitempty"` // in: the stream is a difference: see treetar.Options

	As string `json:"as,omitempty"` // out: its name in the stream; "." for the content of a directory
}

// CopyResult reports a finished copy. Skipped lists what was left out, and why.
type CopyResult struct {
	Skipped []string `json:"skipped,omitempty"`
}

// DiskUsageResult is what the emptyDirs, the writable layers and the logs of a pod use.
type DiskUsageResult struct {
	Bytes      int64            `json:"bytes"`
	Inodes     int64            `json:"inodes"`
	Containers map[string]int64 `json:"containers"` // bytes of the writable layer and the logs of each
}

// Frame is one message from the supervisor; exactly one field is set.
type Frame struct {
	Status  *pod.Status `json:"status,omitempty"`
	Started bool        `json:"started,omitempty"` // exec, connect, attach: it runs; descriptor: the terminal's master, the socket, the input
	Exit    *int        `json:"exit,omitempty"`    // exec, attach: the exit code, 128+n for a signal
	Applied bool        `json:"applied,omitempty"` // done; apply: and recorded, restarts may be in progress
	Copied  *CopyResult `json:"copied,omitempty"`

	DiskUsage *DiskUsageResult `json:"diskUsage,omitempty"`
	Layer     *LayerProgress   `json:"layer,omitempty"` // watch: about an image that the pod waits for; a client may ignore it
	Error     *Error           `json:"error,omitempty"` // the request failed; nothing follows
}

// LayerProgress is the progress of an image layer that is being pulled. Status is one of package
// image. If Layer is empty, it is about the whole image, which is present.
type LayerProgress struct {
	Image  string `json:"image"`
	Layer  string `json:"layer"`
	Status string `json:"status"`
	Done   int64  `json:"done,omitempty"`
	Total  int64  `json:"total,omitempty"`
}

// Control is one message from the client during an exec or an attach. If the client of an exec
// disconnects, its command is killed, unless the client has sent Detach.
type Control struct {
	Signal int  `json:"signal,omitempty"`
	Detach bool `json:"detach,omitempty"` // exec with TTY: the process continues without the client, which disconnects
	EOF    bool `json:"eof,omitempty"`    // attach: the client's input has ended; it still receives output
}

// Error is a failed request. Code is the exit code of the client: 125 podrun's own failure, 126 not
// executable, 127 not found.
type Error struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Code    int    `json:"code"`
}

func (e *Error) Error() string { return e.Message }
