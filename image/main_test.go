package image

import (
	"maps"
	"testing"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

// Tests of what registries, policies and documents say: unlike unpacked files and the store, that is the same for root.
const (
	ofRegistries = "^Test(Artifact|BlobWithout|CredentialHelper|Endless|Ensure|Head|HostileRegistry|LayerOfNext|LayersComeInParallel|Login|LongLogin|MemoryOfAPull|" +
		"Origins|Policy|Pull[A-Z]|Push|Redirects|Remote|Secured|Transports)"
	ofDocuments = "^Test(HostileArchives|HostileBlobs|HostileConfusion|HostileDocuments|LoadEmpty|LoadFormats|LoadNames|LoadNot|LoadPicks|Parse|ResolveMissing|Save|" +
		"ShortNames|WhatAnImage)"
)

func TestMain(m *testing.M) {
	entryPoints := server.EntryPoints()
	maps.Copy(entryPoints, testEntryPoints())
	reexec.Main(entryPoints)
	testenv.MainOutside(m, ofRegistries, ofDocuments)
}
