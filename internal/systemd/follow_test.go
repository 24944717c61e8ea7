package systemd

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFollowServiceFile(t *testing.T) {
	f := Follow{Name: "set", Program: "/opt/a b/podrun", Source: "oci:/media/50% off:1", Options: []string{"--env-file", "/etc/box $1.env"}, Every: time.Hour}
	const want = `# Made by podrun systemd install. Changes are lost when it is run again: put them
# into a drop-in (systemctl --user edit podrun-follow-set.service).

[Unit]
Description=podrun follow: set set
StartLimitIntervalSec=0

# A drop-in with ExecCondition= in [Service] skips a look, for example on a metered link.
[Service]
Type=oneshot
ExecStart="/opt/a b/podrun" follow --once --name set --env-file "/etc/box $$1.env" "oci:/media/50%% off:1"
TimeoutStartSec=infinity
KillMode=process
Restart=on-abnormal
RestartSec=2

[Install]
WantedBy=default.target

[X-Podrun]
Follows=oci:/media/50%% off:1
`
	text := f.ServiceFile()
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	if FollowedBy(text) != f.Source || FollowedSet(f.ServiceName()) != f.Name || !OutlivedByPods(f.ServiceName()) {
		t.Errorf("%q, %q, %v", FollowedBy(text), FollowedSet(f.ServiceName()), OutlivedByPods(f.ServiceName()))
	}
	f.System = true
	system := string(f.ServiceFile())
	if !strings.Contains(system, "\nAfter="+firewalls+"\n") || !strings.Contains(system, "\nWantedBy=multi-user.target\n") || strings.Contains(system, "network-online") {
		t.Errorf("the system's service: %s", system)
	}
}

func TestFollowTimerFile(t *testing.T) {
	f := Follow{Name: "set", Every: 90 * time.Second}
	const want = `# Made by podrun systemd install. Changes are lost when it is run again: put them
# into a drop-in (systemctl --user edit podrun-follow-set.timer).

[Unit]
Description=podrun follow: when to look at the source of set set

# RandomizedDelaySec= spreads the requests of many machines; a drop-in can change it.
[Timer]
OnActiveSec=90s
OnUnitInactiveSec=90s
RandomizedDelaySec=9s

[Install]
WantedBy=timers.target
`
	if diff := cmp.Diff(want, string(f.TimerFile())); diff != "" {
		t.Error(diff)
	}
	for lines, f := range map[string]Follow{
		"\n[Timer]\nOnCalendar=Sun 03:00\nPersistent=true\nRandomizedDelaySec=900s\n":          {Every: time.Second, Calendar: "Sun 03:00"},
		"\n[Timer]\nOnActiveSec=604800s\nOnUnitInactiveSec=604800s\nRandomizedDelaySec=900s\n": {Every: 7 * 24 * time.Hour},
	} {
		if text := string(f.TimerFile()); !strings.Contains(text, lines) {
			t.Errorf("there is no %q in\n%s", lines, text)
		}
	}
}

// TestOtherUnitsAreNotFollowed: units of pods, which end with them, are told from those of podrun follow.
func TestOtherUnitsAreNotFollowed(t *testing.T) {
	if text := (Service{Name: "web", Source: "/src"}).File("podrun@web.service"); FollowedBy(text) != "" {
		t.Errorf("it follows %q", FollowedBy(text))
	}
	for unit, want := range map[string]bool{NodeUnit: true, "podrun@web.service": false, "": false, "podrun@podrun-follow-set.service": false} {
		if OutlivedByPods(unit) != want {
			t.Errorf("%q: %v", unit, !want)
		}
	}
}
