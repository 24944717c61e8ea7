package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestLimaTemplate: the template has only keys that Lima has (pkg/limatype), a machine of both architectures, and scripts
// that a shell can read. Whether a machine starts is not tested.
func TestLimaTemplate(t *testing.T) {
	text, err := os.ReadFile("../../examples/lima/podrun.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type script struct {
		Mode, Description, Script, Hint string
	}
	var template struct {
		MinimumLimaVersion string `yaml:"minimumLimaVersion"`
		Images             []struct{ Location, Arch string }
		CPUs               int `yaml:"cpus"`
		Memory, Disk       string
		Mounts             []struct{ Location string }
		Containerd         struct{ System, User bool }
		Provision, Probes  []script
		Message            string
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&template); err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, image := range template.Images {
		arches = append(arches, image.Arch)
		if !strings.HasPrefix(image.Location, "https://cloud.debian.org/") {
			t.Errorf("the image %s is not Debian's", image.Location)
		}
	}
	if !slices.Equal(arches, []string{"x86_64", "aarch64"}) {
		t.Errorf("images of %q", arches)
	}
	scripts := slices.Concat(template.Provision, template.Probes)
	if len(scripts) != 2 || template.Provision[0].Mode != "system" {
		t.Fatalf("%+v", scripts)
	}
	for _, s := range scripts {
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(s.Script)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(s.Script, "#!/bin/sh\n") {
			t.Errorf("%v\n%s\n%s", err, out, s.Script)
		}
	}
}
