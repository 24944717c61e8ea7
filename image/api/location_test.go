package api

import (
	"strings"
	"testing"
)

func TestParseLocation(t *testing.T) {
	for word, want := range map[string]Location{
		"busybox":                 {Transport: "docker", Path: "busybox", Name: ""},
		"host:5000/x:1":           {Transport: "docker", Path: "host:5000/x:1", Name: ""},
		"oci/x":                   {Transport: "docker", Path: "oci/x", Name: ""},
		"docker://host/x:1":       {Transport: "docker", Path: "host/x:1", Name: ""},
		"docker:1":                {Transport: "docker", Path: "docker:1", Name: ""},
		"oci:/a/b":                {Transport: "oci", Path: "/a/b", Name: ""},
		"oci:/a/b:host:5000/x:1":  {Transport: "oci", Path: "/a/b", Name: "host:5000/x:1"},
		"oci-archive:x.tar:y":     {Transport: "oci-archive", Path: "x.tar", Name: "y"},
		"docker-archive:x.tar:@1": {Transport: "docker-archive", Path: "x.tar", Name: "@1"},
		"dir:/a:b":                {Transport: "dir", Path: "/a:b", Name: ""},
	} {
		if got, err := ParseLocation(word); err != nil || got != want {
			t.Errorf("%s: %+v, %v", word, got, err)
		}
	}
	if _, err := ParseLocation("containers-storage:x"); err == nil || !strings.Contains(err.Error(), "cannot be pulled from containers-storage") {
		t.Error(err)
	}
}
