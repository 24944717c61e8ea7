package quadlet

import (
	"slices"
	"strings"
	"testing"
)

// FuzzKube: no text crashes the parser of Quadlet files, and no key of one ends up outside its line
// in the generated unit.
func FuzzKube(f *testing.F) {
	f.Add("[Kube]\nYaml=web.yaml\n", "[Service]\nRestart=always\n")
	f.Add("[Unit]\nDescription=The site\nRequires=db.kube \\\n # in between\n other.service\n[Kube]\nYaml=\"a b.yaml\"\nYaml=%h/50%%/x.yaml\nNetwork=none\n[X-Mine]\nKey=value\n", "")
	f.Add("[Kube]\nYaml=%\nYaml=%%%z\\\n\\\n", "[\n]\n=\n")
	f.Fuzz(func(t *testing.T, text, dropIn string) {
		k, err := parseKube(text, dropIn)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		for _, path := range k.Yaml {
			if !strings.HasPrefix(path, "/") {
				t.Fatalf("%q is no absolute path", path)
			}
		}
		for section, lines := range k.Extra {
			for _, line := range append(slices.Clone(lines), section) {
				if strings.ContainsAny(line, "\n\r\x00") {
					t.Fatalf("%q of %s is more than a line", line, section)
				}
			}
		}
	})
}

// FuzzContainer: no text crashes the translation of a container, in a Pod of its own or of a .pod file, and what it
// becomes has a manifest.
func FuzzContainer(f *testing.F) {
	f.Add("[Container]\nImage=x\nVolume=data.volume:/x:ro\nMount=type=tmpfs,dst=/y\nPublishPort=[::1]::80-81/udp\nEnvironment=A=1 \"B=%h ${C}\"\nExec=a '\\x41' \\", "[Volume]\nDriver=image\nImage=y\n")
	f.Add("[Container]\nImage=x\nPod=p.pod\nEntrypoint=[\"a\"]\nPodmanArgs=--cpus 1 --init\nAddDevice=-/dev/x\nSecret=a,type=env\nHealthCmd=[\"CMD\"]\n[Service]\nRestart=always\n", "[Volume]\n")
	f.Fuzz(func(t *testing.T, text, volume string) {
		s := testSet("# p.pod\n[Pod]\nVolume=data.volume:/shared\nPublishPort=80\n", "# data.volume\n"+volume, "# web.container\n"+text)
		for _, name := range []string{"web.container", "p.pod"} {
			u, err := s.Unit(name)
			switch {
			case err != nil && err.Error() == "":
				t.Fatal("refused without a word")
			case err != nil:
				continue
			}
			if _, err := u.Manifest(); err != nil {
				t.Fatal(err)
			}
			for _, lines := range u.Extra {
				if strings.ContainsAny(strings.Join(lines, ""), "\n\r\x00") {
					t.Fatalf("%q has more than a line", lines)
				}
			}
			for _, link := range Links("web.service", u.Extra["Install"]) {
				if strings.HasPrefix(link, "/") || strings.HasPrefix(link, "..") {
					t.Fatalf("the link %q is elsewhere", link)
				}
			}
		}
	})
}
