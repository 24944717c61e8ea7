package lifecycle

import (
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Preparation lists the runs of containers that follow unless another event occurs. They can be
// made up to the point at which they execute their programs. It is a hint: only Decide starts
// containers.
type Preparation struct {
	Starts []Action      // StartContainer, each as Decide would issue it
	First  int           // how many of Starts are the first in a sandbox that is being made
	Wake   time.Duration // look again at this CLOCK_BOOTTIME; 0: only on an event
}

// A prepared container takes about 6 MB of memory while it is made, and counts as preparedMemory. So there are few of
// them, and the pod's limit, if any, must have space for them beside the limits of running containers.
// A container that waits for the end of its back-off is prepared only prepareBefore it, because the
// supervisor may hibernate until then.
const (
	maxPrepared    = 8
	preparedMemory = 8 << 20
	prepareBefore  = 2 * time.Second
)

// Prepare returns what to prepare now, in order of need: while the sandbox is made, the containers
// that start in it first; with them (see hasProcessor) and while an init container starts or runs, the
// init containers after it and the app containers; and containers whose back-off is about to end.
// Nothing is prepared for a pod that ends, is paused, or restarts as a whole.
func Prepare(plan *pod.Plan, o *Observed, now Now) Preparation {
	d := &decision{plan: plan, seen: o, now: now, ending: o.currentEnding(plan, now)}
	first := 0
	switch {
	case d.ending != nil || o.Restarting || o.Pause.State != PauseNone:
		return Preparation{}
	case o.Sandbox == SandboxCreating:
		initialized := d.startInits()
		if initialized {
			d.startApps()
		}
		first = len(d.Actions)
		if !initialized && d.hasProcessor() {
			d.prepareAfter(d.firstBlockingInit())
		}
	case o.Sandbox == SandboxUp:
		d.prepareNext()
	}
	n := min(first, d.roomForPrepared(nil))
	if n == first {
		n += min(len(d.Actions)-first, d.roomForPrepared(d.Actions[:first]), maxPrepared-first)
	}
	return Preparation{Starts: d.Actions[:n:n], First: min(first, n), Wake: d.Wake}
}

// prepareNext prepares for a sandbox in which containers run.
func (d *decision) prepareNext() {
	plan, blocking := d.plan, d.firstBlockingInit()
	for i := 0; i <= blocking && i < len(plan.InitContainers); i++ {
		d.prepareRestart(&plan.InitContainers[i], initRole(&plan.InitContainers[i]))
	}
	if blocking == len(plan.InitContainers) {
		for i := range plan.Containers {
			d.prepareRestart(&plan.Containers[i], roleApp)
		}
		return
	}
	state := d.seen.container(plan.InitContainers[blocking].Name).State
	if state == RunRunning || state == RunStarting && d.hasProcessor() {
		d.prepareAfter(blocking)
	}
}

// hasProcessor reports whether the pod may use a whole processor. Otherwise containers that are prepared use up the
// time that the pod's cgroup allows for the start of the first.
func (d *decision) hasProcessor() bool {
	limit := d.plan.Resources.CPULimit
	return limit == 0 || limit >= 1000
}

// prepareAfter prepares the init containers after number i, and the app containers.
func (d *decision) prepareAfter(i int) {
	for i++; i < len(d.plan.InitContainers); i++ {
		d.prepareFirst(&d.plan.InitContainers[i])
	}
	d.prepareApps()
}

// prepareFirst prepares a container that has never run.
func (d *decision) prepareFirst(c *pod.Container) {
	if d.seen.container(c.Name).State == RunNone {
		d.do(StartContainer, c.Name, 0)
	}
}

// prepareApps prepares the app containers that startApps would start at once.
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

// prepareRestart prepares a container near the end of its back-off.
func (d *decision) prepareRestart(c *pod.Container, r role) {
	observed := d.seen.container(c.Name)
	moment := observed.restartAt()
	switch {
	case observed.State != RunEnded, finished(d.plan, c, r, observed), moment <= d.now.Boot:
	case d.now.Boot < moment-prepareBefore:
		d.wakeAt(moment - prepareBefore)
	default:
		d.do(StartContainer, c.Name, observed.Attempt+1)
	}
}

// roomForPrepared returns how many prepared containers the pod's memory limit allows beside those that
// run, and those that the actions in starts start.
func (d *decision) roomForPrepared(starts []Action) int {
	left := d.plan.Resources.MemoryLimit
	if left == 0 {
		return maxPrepared
	}
	for _, c := range slices.Concat(d.plan.All()...) {
		isStarted := slices.ContainsFunc(starts, func(a Action) bool { return a.Container == c.Name })
		switch {
		case !isStarted && !d.seen.container(c.Name).live():
		case c.Resources.MemoryLimit == 0:
			return 0
		default:
			left -= c.Resources.MemoryLimit
		}
	}
	return int(min(max(left, 0)/preparedMemory, maxPrepared))
}
