package systemd

import (
	"fmt"
	"strings"
	"time"
)

// Follow is what the units of podrun follow contain: a service that looks at a source once, and a timer for it. Paths
// are absolute.
type Follow struct {
	Name     string // of the set
	Program  string // podrun's own path
	Source   string
	Options  []string      // of podrun follow
	Every    time.Duration // how long after a look the timer starts the next
	Calendar string        // when it starts one (systemd.time(7)), in the place of Every; or ""
	System   bool          // for the system's manager
}

// followPrefix begins the names of the units of podrun follow.
const followPrefix = "podrun-follow-"

// ServiceName returns the name of the service.
func (f Follow) ServiceName() string { return followPrefix + f.Name + ".service" }

// followsKey has the source in the service's file.
const followsKey = "Follows="

// ServiceFile returns the text of the service's file. The service starts at boot without waiting for a network, because
// it starts pods that were ready before. Its pods are in scopes of their own.
func (f Follow) ServiceFile() []byte {
	var b strings.Builder
	line := begin(&b, f.ServiceName(), "podrun follow: set "+f.Name, f.System)
	if f.System {
		afterFirewalls(line)
	}
	line("StartLimitIntervalSec=0") // for Restart=
	line("\n# A drop-in with ExecCondition= in [Service] skips a look, for example on a metered link.")
	line("[Service]\nType=oneshot\nExecStart=%s follow --once --name %s%s%s", quoteWord(f.Program, false), f.Name, joinWords(f.Options), joinWords([]string{f.Source}))
	// podrun follow has the limits for a change. A run that is killed is repeated at once: it finishes the change, or the
	// way back. One that fails has finished.
	line("TimeoutStartSec=infinity\nKillMode=process\nRestart=on-abnormal\nRestartSec=2")
	line("\n[Install]\nWantedBy=%s", bootTarget(f.System))
	line("\n[%s]\n%s%s", ownSection, followsKey, EscapeSpecifiers(f.Source))
	return []byte(b.String())
}

// maxFollowDelay is the longest random delay of the timer. It spreads the requests of many machines.
const maxFollowDelay = 15 * time.Minute

// TimerFile returns the text of the timer's file.
func (f Follow) TimerFile() []byte {
	var b strings.Builder
	timer := FollowTimer(f.ServiceName())
	line := begin(&b, timer, "podrun follow: when to look at the source of set "+f.Name, f.System)
	line("\n# RandomizedDelaySec= spreads the requests of many machines; a drop-in can change it.\n[Timer]")
	delay := maxFollowDelay
	if f.Calendar != "" {
		line("OnCalendar=%s\nPersistent=true", f.Calendar)
	} else {
		// The first is for a service that has not run since the boot.
		line("OnActiveSec=%[1]s\nOnUnitInactiveSec=%[1]s", seconds(f.Every))
		delay = min(delay, f.Every/10)
	}
	line("RandomizedDelaySec=%s", seconds(delay))
	line("\n[Install]\nWantedBy=timers.target")
	return []byte(b.String())
}

// seconds formats a duration for a unit file.
func seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// FollowTimer returns the name of the timer of a service of podrun follow.
func FollowTimer(service string) string { return strings.TrimSuffix(service, ".service") + ".timer" }

// FollowedBy returns the source that a service of podrun follow looks at; "" of other units.
func FollowedBy(text []byte) string { return stored(text, followsKey) }

// FollowedSet returns the name of the set that a service of podrun follow changes.
func FollowedSet(service string) string {
	return strings.TrimSuffix(strings.TrimPrefix(service, followPrefix), ".service")
}

// OutlivedByPods reports whether the pods that a unit starts keep running when it stops.
func OutlivedByPods(unit string) bool {
	return unit == NodeUnit || strings.HasPrefix(unit, followPrefix)
}
