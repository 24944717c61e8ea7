package main

import (
	"bytes"
	"os"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
)

// logs prints the existing output of one container.
func logs(words []string) (code int, ok bool) {
	o, ok := parseLogs(words)
	if !ok {
		return 0, false
	}
	p, plan, err := recorded(o.namespace, o.pod)
	if err != nil {
		return 0, false
	}
	var messages bytes.Buffer
	container, err := podclient.ChooseContainer(&messages, p, plan, o.container)
	if err != nil {
		return 0, false
	}
	status, err := podview.StatusOf(p)
	if err != nil {
		return 0, false
	}
	attempt, err := podview.Instance(p, container.Name, status, o.previous)
	if err != nil {
		return 0, false
	}
	os.Stderr.Write(messages.Bytes())
	sink := podview.NewLogWriter(os.Stdout, os.Getenv, o.timestamps, false).Plain()
	return reportError(podview.PrintLog(p, container.Name, attempt, o.selection(), sink)), true
}
