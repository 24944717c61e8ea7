package validation_test

import (
	"strings"
	"testing"
)

func TestHugePagesAreChecked(t *testing.T) {
	for resources, want := range map[string]string{
		"limits: {hugepages-2Mi: 2Mi}":                                           "HugePages require cpu or memory",
		"limits: {cpu: 1, hugepages-2Mi: 3Mi}":                                   "3Mi is not positive integer multiple of hugepages-2Mi",
		"{limits: {cpu: 1, hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 2Mi}}": "must be equal to hugepages-2Mi limit of 4Mi",
		"requests: {cpu: 1, hugepages-2Mi: 2Mi}":                                 "Limit must be set for non overcommitable resources",
		"limits: {cpu: 1, hugepages-5Mi: 5Mi}":                                   "only cpu, memory, ephemeral-storage, hugepages-…, pids and CDI devices",
	} {
		if resources[0] != '{' {
			resources = "{" + resources + "}"
		}
		err := strings.Join(mistakes("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x, resources: "+resources+"}]}\n"), "\n")
		if !strings.Contains(err, want) {
			t.Errorf("%s: %s", resources, err)
		}
	}
}
