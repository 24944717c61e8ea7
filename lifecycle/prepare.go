package lifecycle

import (
	"slices"
	"time"

	"github.com/podrun/podrun/pod"
)

// Preparation says which runs of containers follow, unless something happens, so that they
// can be made up to the moment at which they execute their programs. It is no promise: what
// Decide starts counts.
type Preparation struct {
	Starts []Action      // StartContainer, each as Decide would order it
	Wake   time.Duration // look again at this Boot time; 0: only on an event
}

// What waits to execute its program takes memory, some 6 MB of it: so there are not many of
// them, and the pod's limit, if it has one, must have room for them beside the limits of what
// runs. What is prepared for the end of a back-off is so at its end only: the pod may doze
// before.
const (
	maxPrepared    = 8
	preparedMemory = 8 << 20
	prepareAhead   = 2 * time.Second
)

// Prepare says what to prepare now, in the order of need: while the sandbox is made what is
// started in it at once; while the program of an init container runs, or a sidecar comes to
// run, the next one or, after the last, the app containers; and containers whose back-off is
// about to be over. What is being started is not to share the processors with what comes
// later. Of a pod that ends, is paused, or begins anew nothing is prepared.
func Prepare(plan *pod.Plan, o *Observed, now Now) Preparation {
	d := &decision{plan: plan, seen: o, now: now, ending: o.ending(plan, now)}
	switch {
	case d.ending != nil || o.Restarting || o.Pause.State != PauseNone:
		return Preparation{}
	case o.Sandbox == SandboxCreating:
		if d.startInits() {
			d.startApps()
		}
	case o.Sandbox == SandboxUp:
		d.prepareNext()
	}
	n := min(len(d.Actions), d.roomForPrepared())
	return Preparation{Starts: d.Actions[:n:n], Wake: d.Wake}
}

// prepareNext is for a sandbox that containers run in.
func (d *decision) prepareNext() {
	plan, front := d.plan, d.front()
	for i := 0; i <= front && i < len(plan.InitContainers); i++ {
		d.prepareRestart(&plan.InitContainers[i], initRole(&plan.InitContainers[i]))
	}
	switch {
	case front == len(plan.InitContainers):
		for i := range plan.Containers {
			d.prepareRestart(&plan.Containers[i], roleApp)
		}
	case d.seen.container(plan.InitContainers[front].Name).State != RunRunning:
	case front+1 < len(plan.InitContainers):
		d.prepareFirst(&plan.InitContainers[front+1])
	default:
		d.prepareApps()
	}
}

// prepareFirst is for a container that has never run.
func (d *decision) prepareFirst(c *pod.Container) {
	if d.seen.container(c.Name).State == RunNone {
		d.do(StartContainer, c.Name, 0)
	}
}

// prepareApps is startApps for those that are started at once.
func (d *decision) prepareApps() {
	priority, ordered := d.priority()
	for i := range d.plan.Containers {
		c := &d.plan.Containers[i]
		if ordered && c.Priority < priority {
			continue
		}
		d.prepareFirst(c)
		if c.PostStart != nil {
			return
		}
	}
}

// prepareRestart is for a container that waits for the end of its back-off.
func (d *decision) prepareRestart(c *pod.Container, r role) {
	seen := d.seen.container(c.Name)
	at := seen.restartAt()
	switch {
	case seen.State != RunEnded, finished(d.plan, c, r, seen), at <= d.now.Boot:
	case d.now.Boot < at-prepareAhead:
		d.wakeAt(at - prepareAhead)
	default:
		d.do(StartContainer, c.Name, seen.Attempt+1)
	}
}

// roomForPrepared is how many containers the pod's memory lets wait beside those that run.
func (d *decision) roomForPrepared() int {
	left := d.plan.Resources.MemoryLimit
	if left == 0 {
		return maxPrepared
	}
	for _, c := range slices.Concat(d.plan.All()...) {
		switch {
		case !d.seen.container(c.Name).live():
		case c.Resources.MemoryLimit == 0:
			return 0
		default:
			left -= c.Resources.MemoryLimit
		}
	}
	return int(min(max(left, 0)/preparedMemory, maxPrepared))
}
