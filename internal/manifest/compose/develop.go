package compose

import (
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// annotationSync has the rules of podrun up --watch.
const annotationSync = "podrun.dev/sync"

// syncRule is a rule of annotationSync.
type syncRule struct {
	Path        string   `json:"path"`
	Action      string   `json:"action"`
	Target      string   `json:"target,omitempty"`
	Container   string   `json:"container,omitempty"`
	Ignore      []string `json:"ignore,omitempty"`
	Include     []string `json:"include,omitempty"`
	InitialSync bool     `json:"initial_sync,omitempty"`
}

// watchActions are the actions that podrun has.
var watchActions = []types.WatchAction{types.WatchActionSync, types.WatchActionRestart, types.WatchActionSyncRestart, types.WatchActionRebuild}

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
		rule := syncRule{
			Path: w.Path, Action: string(w.Action), Target: w.Target, Container: api.Label(s.Name), Ignore: w.Ignore, Include: w.Include, InitialSync: w.InitialSync,
		}
		copies := w.Action == types.WatchActionSync || w.Action == types.WatchActionSyncRestart
		switch {
		case !slices.Contains(watchActions, w.Action):
			s.refuse(s.at("develop", "watch"), "is refused: the action is sync, restart, sync+restart or rebuild, not %s", w.Action)
		case copies && w.Target == "":
			s.refuse(s.at("develop", "watch"), "is refused: %s of %s requires target", w.Action, w.Path)
		case !copies:
			rule.Target = ""
		}
		s.sync = append(s.sync, rule)
	}
}
