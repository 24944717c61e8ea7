package main

import (
	"bytes"
	"errors"
	"os"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/crilog"
)

// logs shows what there is of one container's output.
func logs(words []string) (code int, ok bool) {
	o, ok := parseLogs(words)
	if !ok {
		return 0, false
	}
	place, plan, err := recorded(o.namespace, o.pod)
	if err != nil {
		return 0, false
	}
	var said bytes.Buffer
	container, err := remote.Choose(&said, place, plan, o.container)
	if err != nil {
		return 0, false
	}
	status, err := reading.StatusOf(place)
	if err != nil {
		return 0, false
	}
	attempt, err := reading.Instance(place, container.Name, status, o.previous)
	if err != nil {
		return 0, false
	}
	os.Stderr.Write(said.Bytes())
	sink := reading.NewLogView(os.Stdout, os.Getenv, o.timestamps, false).Plain()
	err = crilog.Read(place.LogDir(container.Name), attempt, o.selection(), sink)
	return ended(errors.Join(err, reading.Finish(sink))), true
}
