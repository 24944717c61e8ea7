package cli

import (
	"os"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// busy is the error of a pod that another command is making or removing.
func busy(p store.Pod) error {
	return report.New(report.Failure, "try again when that is done; podrun ps lists the pods", "pod %s is being started or removed by another podrun", p.Name)
}

// vacate locks a pod's place and removes what an earlier pod of the name, which
// has ended or was killed, has left there.
func (l *launch) vacate(p store.Pod) (*os.File, error) {
	old := p.HasRemains()
	lock, err := p.Lock()
	if err != nil || !old {
		return lock, err
	}
	err = l.keeper.remove(p) // and with it the lock's file
	lock.Close()
	if err != nil {
		return nil, err
	}
	return p.Lock()
}
