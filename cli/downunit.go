package cli

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// warnOfUnits says of pods that systemd would start again what ends them for good.
func (f *front) warnOfUnits(dirs store.Dirs, places []store.Pod) {
	for _, p := range places {
		switch unit, err := dirs.UnitOf(p); {
		case err != nil:
			report.Print(f.err, err)
		case unit != "":
			systemctl := "systemctl --user"
			if os.Geteuid() == 0 {
				systemctl = "systemctl"
			}
			fmt.Fprintf(f.err, "podrun: pod %s belongs to %s, which may start it again; %s stop %s ends both\n", p.Name, unit, systemctl, unit)
		}
	}
}
