package image

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/internal/testenv"
)

// refused loads a file that must be refused, with reason in the error, and must leave nothing behind.
func refused(t *testing.T, path, reason string) {
	t.Helper()
	s := newStore(t)
	images, err := s.Load(context.Background(), path)
	if err == nil || len(images) != 0 {
		t.Fatalf("loaded %d images, %v; want an error about %q", len(images), err, reason)
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("error %q does not say %q", err, reason)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}

// TestHostileNames unpacks layers that try to reach a canary outside. All files must be inside the layer,
// and the canary unchanged.
func TestHostileNames(t *testing.T) {
	testenv.NoLeaks(t)
	for name, entries := range map[string][]f{
		"dots":                   {{Name: "UPCANARY", Content: "evil"}},
		"dots in the middle":     {{Name: "a/UPCANARY", Content: "evil"}},
		"absolute":               {{Name: "CANARY", Content: "evil"}},
		"absolute link":          {{Name: "l", Link: "CANARYDIR"}, {Name: "l/canary", Content: "evil"}},
		"relative link":          {{Name: "d/l", Link: "UPCANARYDIR"}, {Name: "d/l/canary", Content: "evil"}},
		"link to a link":         {{Name: "a", Link: "/"}, {Name: "b", Link: "aCANARYDIR"}, {Name: "b/canary", Content: "evil"}},
		"link as last part":      {{Name: "l", Link: "CANARY"}, {Name: "l", Content: "evil"}},
		"directory through link": {{Name: "l", Link: "CANARY"}, {Name: "l/"}},
		"hard link outside":      {{Name: "h", Type: '1', Link: "UPCANARY"}, {Name: "h", Content: "evil"}},
		"hard link absolute":     {{Name: "h", Type: '1', Link: "CANARY", Mode: 0o666}},
		"hard link to link":      {{Name: "l", Link: "CANARY"}, {Name: "h", Type: '1', Link: "l"}, {Name: "h", Content: "evil"}},
		"whiteout":               {{Name: "UPCANARYDIR/.wh.canary"}},
		"whiteout through link":  {{Name: "l", Link: "CANARYDIR"}, {Name: "l/.wh.canary"}},
		"whiteout of dots":       {{Name: ".wh..."}},
		"opaque through link":    {{Name: "l", Link: "CANARYDIR"}, {Name: "l/.wh..wh..opq"}},
		"link replaced later":    {{Name: "l/"}, {Name: "l/.wh.canary"}, {Name: "l", Link: "CANARYDIR"}},
		"chmod through link":     {{Name: "l", Link: "CANARY", Mode: 0o777}, {Name: "l", Type: '1', Link: "l", Mode: 0o777}},
	} {
		t.Run(name, func(t *testing.T) { reachesNothing(t, entries) })
	}
}

// TestHostileMetadata unpacks metadata that a layer must not set.
func TestHostileMetadata(t *testing.T) {
	capability := "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // cap_net_bind_service+ep
	layer := layerTar(t,
		f{Name: "dev/"}, f{Name: "dev/mem", Type: '3', Dev: 1, Mode: 0o666}, f{Name: "dev/sda", Type: '4', Dev: 8, Mode: 0o666},
		f{Name: "dev/zero", Type: '3', Mode: 0o666}, // 0:0, the form of a whiteout
		f{Name: "dev/log", Type: '6', Mode: 0o600},
		f{Name: "d/", Xattrs: map[string]string{"user.overlay.opaque": "y", "user.overlay.redirect": "/etc", "trusted.overlay.opaque": "y"}},
		f{Name: "file", Content: "x", Xattrs: map[string]string{
			"user.overlay.metacopy": "", "user.kept": "1", "security.capability": capability,
			"security.selinux": "evil_t", "system.posix_acl_access": "junk", "trusted.x": "y",
		}},
		f{Name: "minus", UID: -1, GID: -1, Mode: 0o4755}, f{Name: "nobody", UID: 65534, GID: 65534},
	)
	s := newStore(t)
	got := load(t, s, newLayout(t).add(img{Name: "hostile", Layers: [][]byte{layer}}).path())
	want := tree{
		".":       "dir 0755 0:0",
		"dev":     "dir 0755 0:0",
		"dev/log": "fifo 0600 0:0",
		"d":       "dir 0755 0:0",
		"file":    "file 0644 0:0 x security.capability,user.kept",
		"minus":   "file 0755 0:0 ",
		"nobody":  "file 0644 65534:65534 ",
	}
	if diff := cmp.Diff(want, inUserns(t, "_tree", got.Layers[0])); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	rec, err := s.ReadLayer(digest.FromBytes(layer))
	if err != nil || rec.Devices != 3 || rec.UnmappedOwners != 1 {
		t.Errorf("%+v, %v; want 3 devices and 1 squashed", rec, err)
	}
}

// TestHostileDocuments changes an image's documents. Each result must be refused and leave nothing in the
// store.
func TestHostileDocuments(t *testing.T) {
	layer := layerTar(t, f{Name: "x", Content: "x"})
	other := digest.FromString("other")
	for name, tt := range map[string]struct {
		edit func(*v1.Image, *v1.Manifest)
		want string
	}{
		"wrong diffID":    {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.DiffIDs[0] = other }, "its content is sha256:"},
		"diffID as path":  {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.DiffIDs[0] = "sha256:../../../../x" }, "digest"},
		"diffID sha512":   {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.DiffIDs[0] = digest.SHA512.FromString("x") }, "only sha256"},
		"no diffID":       {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.DiffIDs = nil }, "1 layers and the config 0"},
		"rootfs type":     {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.Type = "windows" }, `root file system type "windows"`},
		"other system":    {func(c *v1.Image, _ *v1.Manifest) { c.OS = "windows" }, "the image is for windows/"},
		"other machine":   {func(c *v1.Image, _ *v1.Manifest) { c.Architecture = "s390x" }, "the image is for linux/s390x"},
		"too many layers": {func(c *v1.Image, _ *v1.Manifest) { c.RootFS.DiffIDs = make([]digest.Digest, 201) }, "201 layers"},
		"layer as path":   {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].Digest = "sha256:../../../../x" }, "digest"},
		"layer missing":   {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].Digest = other }, "no such file"},
		"layer too long":  {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].Size-- }, "longer than its"},
		"layer too short": {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].Size++ }, "ends after"},
		"layer encrypted": {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].MediaType += "+encrypted" }, "media type"},
		"layer size":      {func(_ *v1.Image, m *v1.Manifest) { m.Layers[0].Size = -1 }, "no size"},
		"config is no one": {func(_ *v1.Image, m *v1.Manifest) {
			m.Config = v1.Descriptor{MediaType: "application/vnd.cncf.helm.config.v1+json", Digest: other}
		}, "not a container image, and cannot be mounted either"},
		"config missing": {func(_ *v1.Image, m *v1.Manifest) {
			m.Config = v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: other}
		}, "no such file"},
		"config too large": {func(_ *v1.Image, m *v1.Manifest) {
			m.Config = v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: other, Size: ingest.MaxJSON + 1}
		}, "4194304"},
		"manifest's name": {func(_ *v1.Image, m *v1.Manifest) { m.MediaType = v1.MediaTypeImageIndex }, "ambiguous"},
		"manifest too large": {func(_ *v1.Image, m *v1.Manifest) {
			m.Annotations = map[string]string{"x": strings.Repeat("x", ingest.MaxJSON)}
		}, "larger than 4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t).add(img{Name: "hostile", Layers: [][]byte{layer}, Edit: tt.edit})
			refused(t, l.path(), tt.want)
		})
	}
}

// TestHostileBlobs changes a blob but not its digest.
func TestHostileBlobs(t *testing.T) {
	layer := layerTar(t, f{Name: "x", Content: strings.Repeat("x", 2000)})
	for name, tt := range map[string]struct {
		compress func(testing.TB, []byte) []byte
		which    func(v1.Manifest) digest.Digest
		want     string
	}{
		"layer":       {nil, func(m v1.Manifest) digest.Digest { return m.Layers[0].Digest }, "instead of sha256:"},
		"layer, gzip": {gzipped, func(m v1.Manifest) digest.Digest { return m.Layers[0].Digest }, "instead of sha256:"},
		"layer, zstd": {zstandard, func(m v1.Manifest) digest.Digest { return m.Layers[0].Digest }, "instead of sha256:"},
		"config":      {nil, func(m v1.Manifest) digest.Digest { return m.Config.Digest }, "instead of sha256:"},
		"manifest":    {nil, nil, "instead of sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t).add(img{Name: "hostile", Layers: [][]byte{layer}, Compress: tt.compress})
			d := l.index.Manifests[0].Digest
			if tt.which != nil {
				var m v1.Manifest
				if err := json.Unmarshal(l.read(d), &m); err != nil {
					t.Fatal(err)
				}
				d = tt.which(m)
			}
			b := l.read(d)
			index := bytes.LastIndexByte(b, 'x')
			if index < 0 {
				index = len(b) / 2
			}
			b[index] ^= 1
			l.write("blobs/sha256/"+d.Encoded(), b)
			refused(t, l.path(), tt.want)
		})
	}
}

func (l *layoutDir) read(d digest.Digest) []byte {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, "blobs/sha256", d.Encoded()))
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

// TestHostileConfusion is CVE-2021-41190: a document that can be read as two kinds.
func TestHostileConfusion(t *testing.T) {
	l := newLayout(t)
	m := l.image(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	var both map[string]any
	if err := json.Unmarshal(l.read(m.Digest), &both); err != nil {
		t.Fatal(err)
	}
	both["manifests"] = []v1.Descriptor{m}
	for _, mediaType := range []string{v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.v2+json", ""} {
		for _, inside := range []string{v1.MediaTypeImageManifest, v1.MediaTypeImageIndex, ""} {
			both["mediaType"] = inside
			d := l.json(mediaType, both)
			l.index.Manifests = []v1.Descriptor{d}
			refused(t, l.path(), "ambiguous")
		}
	}
}

// TestHostileArchives loads malformed archives.
func TestHostileArchives(t *testing.T) {
	write := func(t *testing.T, entries ...f) string {
		path := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(path, layerTar(t, entries...), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	docker := func(config string) f {
		return f{Name: "manifest.json", Content: `[{"Config":"` + config + `","RepoTags":["x:1"],"Layers":["l.tar"]}]`}
	}
	config := `{"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:` + hex64 + `"]}}`
	for name, tt := range map[string]struct {
		path func(t *testing.T) string
		want string
	}{
		"links in a circle": {func(t *testing.T) string {
			return write(t, f{Name: "manifest.json", Link: "b"}, f{Name: "b", Link: "manifest.json"})
		}, "it is not an image"},
		"config outside": {func(t *testing.T) string { return write(t, docker("/etc/passwd")) }, "not exist"},
		"config by link": {func(t *testing.T) string {
			return write(t, docker("c"), f{Name: "c", Link: "/etc/passwd"})
		}, "not exist"},
		"config's name": {func(t *testing.T) string {
			return write(t, docker(hex64+".json"), f{Name: hex64 + ".json", Content: config})
		}, "not match its name"},
		"layer missing": {func(t *testing.T) string { return write(t, docker("c"), f{Name: "c", Content: config}) }, "not exist"},
		"layer wrong": {func(t *testing.T) string {
			return write(t, docker("c"), f{Name: "c", Content: config}, f{Name: "l.tar", Content: string(layerTar(t, f{Name: "x"}))})
		}, "its content is"},
		"empty list": {func(t *testing.T) string { return write(t, f{Name: "manifest.json", Content: "[]"}) }, "no image in it"},
		"empty index": {func(t *testing.T) string {
			return write(t, f{Name: "index.json", Content: `{"schemaVersion":2,"manifests":[]}`})
		}, "no image in it"},
		"large document": {func(t *testing.T) string {
			return write(t, f{Name: "index.json", Content: strings.Repeat(" ", ingest.MaxJSON+1)})
		}, "larger than"},
		"cut off": {func(t *testing.T) string {
			path := write(t, f{Name: "manifest.json", Content: strings.Repeat("x", 4000)})
			if err := os.Truncate(path, 1000); err != nil {
				t.Fatal(err)
			}
			return path
		}, "cut off"},
		"directory with a link": {func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "index.json")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "escapes"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, tt.path(t), tt.want) })
	}
}

func wantError(t *testing.T, err error, word string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("got %v; want an error about %q", err, word)
	}
}
