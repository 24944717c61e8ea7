package main

import (
	"bytes"
	"errors"
	"os"

	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/internal/crilog"
)

// logs prints the existing output of one container.
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
	container, err := podclient.Choose(&said, place, plan, o.container)
	if err != nil {
		return 0, false
	}
	status, err := podview.StatusOf(place)
	if err != nil {
		return 0, false
	}
	attempt, err := podview.Instance(place, container.Name, status, o.previous)
	if err != nil {
		return 0, false
	}
	os.Stderr.Write(said.Bytes())
	sink := podview.NewLogWriter(os.Stdout, os.Getenv, o.timestamps, false).Plain()
	err = crilog.Read(place.LogDir(container.Name), attempt, o.selection(), sink)
	return ended(errors.Join(err, podview.Finish(sink))), true
}
