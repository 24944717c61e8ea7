package cli

import (
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// upPod is one pod of the manifests.
type upPod struct {
	object  *manifest.Object
	place   store.Pod
	plan    *pod.Plan
	running bool // it was there already, made in accordance with the manifest, or changed to be so
	started bool

	change      *change           // what the manifest changes about one that runs; nil: nothing
	renewed     map[string]int    // the containers that the change restarts, with their restarts before
	joining     []joining         // ephemeral containers that the change adds
	replaces    bool              // another one has to be stopped and removed first
	anew        bool              // it is to be made anew whatever runs
	replacement string            // the id of the record by which it replaces another; "": there is none
	fixed       map[string]string // the ids of images, by their references, that names do not decide
	images      map[string]string // the ids of the plan's images, by their references
	pull        string            // by which policy its images are had; "": by their own
	past        *past             // nil unless a pod that was lost goes on

	awaits   bool        // not all of its images are here: they are pulled while it is Pending
	pending  bool        // what is there waits for its images
	looked   time.Time   // when this command looked for them
	pulled   bool        // they came while this command waited for them
	failFast bool        // and who waits for it wants to know of the first attempt that fails
	waiting  *pendingPod // nil unless this process pulls them
	lock     *os.File    // of its place, if this process has it before it starts the pod

	ports   map[string]*os.File // of the host, opened for it, by their names
	renewal *renewal            // nil unless its file is watched

	front  *podinit.NotifyTarget // for a pod that systemd runs: what its supervisor gets
	socket *os.File              // and our end of it
	last   *pod.Status           // how it ended, once that is known
}

// newUID makes a random UUID (RFC 9562, version 4).
func newUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// each does something for all pods at once.
func each(pods []*upPod, do func(i int, p *upPod)) {
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { do(i, p) })
	}
	all.Wait()
}
