package compose

import (
	"slices"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// annotationSync has the rules of podrun up --watch.
const annotationSync = "podrun.dev/sync"

// setWatch adds the rules of develop.watch.
func (s *service) setWatch() {
	if s.Develop == nil {
		return
	}
	if s.request.Confined && len(s.Develop.Watch) > 0 {
		s.warn(s.at("develop"), "has no effect under a policy, and in an artifact")
		return
	}
	for _, w := range s.Develop.Watch {
		rule := api.SyncRule{
			Path: w.Path, Action: string(w.Action), Target: w.Target, Container: api.Label(s.Name), Ignore: w.Ignore, Include: w.Include, InitialSync: w.InitialSync,
		}
		switch {
		case !slices.Contains(api.SyncActions(), rule.Action):
			s.refuse(s.at("develop", "watch"), "is refused: the action is sync, restart, sync+restart or rebuild, not %s", w.Action)
		case rule.Copies() && w.Target == "":
			s.refuse(s.at("develop", "watch"), "is refused: %s of %s requires target", w.Action, w.Path)
		case !rule.Copies():
			rule.Target = ""
		}
		s.sync = append(s.sync, rule)
	}
}
