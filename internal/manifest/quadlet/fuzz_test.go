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
