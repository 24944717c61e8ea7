package api

// MaxArtifact is the maximum size of an artifact with manifests, in bytes.
const MaxArtifact = 64 << 20

// The types of artifacts with manifests.
const (
	// FluxArtifact is the type of a tree of manifests, as `flux push artifact` makes it (fluxcd/pkg: oci/oci.go).
	FluxArtifact = "application/vnd.cncf.flux.config.v1+json"
	// FluxContent is the media type of its layer.
	FluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"
	// ComposeArtifact and ComposeArtifactV10 are the types of a compose project, as `docker compose publish` makes it
	// for registries that know artifacts and for older ones (docker/compose: internal/oci/push.go).
	ComposeArtifact    = "application/vnd.docker.compose.project"
	ComposeArtifactV10 = "application/vnd.docker.compose.config.empty.v1+json"
)
