package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

// The benchmark's image: its layers, the files of each layer, and the bytes of each file, which
// gzip halves.
const (
	pullLayers = 8
	pullFiles  = 750
	pullBytes  = 25_000
)

// writeImage writes the image as an OCI layout, with the name bench.
func writeImage(dir string) error {
	w := layoutWriter{dir: dir}
	rnd := rand.New(rand.NewPCG(1, 2))
	var diffIDs []string
	var layers []any
	for l := range pullLayers {
		raw, err := benchLayer(l, rnd)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(raw); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		diffIDs = append(diffIDs, fmt.Sprintf("sha256:%x", sha256.Sum256(raw)))
		layers = append(layers, w.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes()))
	}
	config := w.json("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	})
	const kind = "application/vnd.oci.image.manifest.v1+json"
	top := w.json(kind, map[string]any{"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers})
	top["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "bench"}
	w.file("index.json", map[string]any{"schemaVersion": 2, "manifests": []any{top}})
	w.file("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	return w.err
}

func benchLayer(l int, rnd *rand.Rand) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range pullFiles {
		b := make([]byte, 0, pullBytes)
		for len(b) < pullBytes/2 {
			b = append(b, byte(rnd.Uint32()))
		}
		b = append(b, strings.Repeat(fmt.Sprintf("line %d of text\n", i), pullBytes/20)[:pullBytes/2]...)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("l%d/d%d/f%d", l, i/50, i), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(b))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

// layoutWriter writes the files of a layout and keeps its first error.
type layoutWriter struct {
	dir string
	err error
}

func (w *layoutWriter) write(name string, b []byte) {
	path := filepath.Join(w.dir, name)
	if w.err == nil {
		w.err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if w.err == nil {
		w.err = os.WriteFile(path, b, 0o644)
	}
}

func (w *layoutWriter) file(name string, v any) {
	b, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	w.write(name, b)
}

// blob writes a blob and returns its descriptor.
func (w *layoutWriter) blob(mediaType string, b []byte) map[string]any {
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	w.write("blobs/sha256/"+sum, b)
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(b)}
}

func (w *layoutWriter) json(mediaType string, v any) map[string]any {
	b, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	return w.blob(mediaType, b)
}

// pullCost is the cost of fetching the image of 150 MB and 8 layers, as medians. Memory is the peak
// of all processes together, writes are the kernel's count.
type pullCost struct {
	Milliseconds float64 `json:"ms"`
	PSS          int64   `json:"peakPSSKiB"`
	Written      int64   `json:"writtenBytes"`
	Syncs        int     `json:"syncs"` // calls of fsync and the like; -1 if they could not be counted
}

// puller is a way to fetch the image, and to remove it.
type puller struct {
	task, engine string
	fetch        func() *exec.Cmd
	remove       func() *exec.Cmd
}

// measurePulls runs a registry; the engines take turns to pull and load.
func (b *bench) measurePulls() (map[string]map[string]pullCost, error) {
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	dir := filepath.Join(b.work, "pulls")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, stop, err := startRegistry(dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	layout, archive, ref := filepath.Join(dir, "layout"), filepath.Join(dir, "image.tar"), addr+"/bench:1"
	if err := writeImage(layout); err != nil {
		return nil, err
	}
	for _, to := range []string{"docker://" + ref, "oci-archive:" + archive + ":" + ref} {
		if _, err := timed(exec.Command("skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", "oci:"+layout+":bench", to)); err != nil {
			return nil, err
		}
	}
	pullers, err := b.pullers(dir, archive, ref)
	if err != nil {
		return nil, err
	}
	runs := map[string]map[string][]pullCost{}
	if err := measure.Rounds("bench: images", 1, b.rounds, func(int) error {
		for _, p := range pullers {
			c, err := p.once(b.user)
			if err != nil {
				return err
			}
			put(runs, p.task, p.engine, append(runs[p.task][p.engine], c))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	costs := map[string]map[string]pullCost{}
	for _, p := range pullers {
		c := medianOf(runs[p.task][p.engine])
		if c.Syncs, err = p.syncs(b.user, dir); err != nil {
			return nil, err
		}
		put(costs, p.task, p.engine, c)
	}
	return costs, nil
}

// pullers returns the ways to fetch the image: by reference from a registry, or from an archive.
func (b *bench) pullers(dir, archive, ref string) ([]puller, error) {
	copied := filepath.Join(dir, "copied")
	if err := os.MkdirAll(copied, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chown(copied, int(b.user.uid), int(b.user.gid)); err != nil {
		return nil, err
	}
	copied = filepath.Join(copied, "image")
	ours, peer := b.ours, b.peer
	oursOff := func() *exec.Cmd { return ours.run("image", "rm", ref) }
	peersOff := func() *exec.Cmd { return peer.run("rmi", "-f", ref) }
	return []puller{
		{"pull", ours.name(), func() *exec.Cmd { return ours.run("image", "pull", ref) }, oursOff},
		{"pull", peer.name(), func() *exec.Cmd { return peer.run("pull", "-q", "--tls-verify=false", ref) }, peersOff},
		{"pull", "skopeo", func() *exec.Cmd {
			return b.user.command(peer.env, "skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", "docker://"+ref, "dir:"+copied)
		}, func() *exec.Cmd { return b.user.command(nil, "rm", "-r", copied) }},
		{"load", ours.name(), func() *exec.Cmd { return ours.run("image", "load", archive) }, oursOff},
		{"load", peer.name(), func() *exec.Cmd { return peer.run("load", "-q", "-i", archive) }, peersOff},
	}, nil
}

// once fetches the image and removes it again.
func (p *puller) once(user *account) (pullCost, error) {
	done := make(chan struct{})
	peak := make(chan int64)
	go func() {
		var most int64
		for {
			most = max(most, user.descendantsPSS())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	cmd := p.fetch()
	took, err := timed(cmd)
	close(done)
	c := pullCost{Milliseconds: measure.Milliseconds(took), PSS: <-peak}
	if err != nil {
		return c, err
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.Written = u.Oublock * 512 // includes the processes that it has waited for
	}
	_, err = timed(p.remove())
	return c, err
}

// medianOf returns the median of each figure separately.
func medianOf(runs []pullCost) pullCost {
	var ms, pss, written []float64
	for _, r := range runs {
		ms, pss, written = append(ms, r.Milliseconds), append(pss, float64(r.PSS)), append(written, float64(r.Written))
	}
	return pullCost{Milliseconds: measure.Median(ms), PSS: int64(measure.Median(pss)), Written: int64(measure.Median(written))}
}

// syncs counts the calls that wait for the disk, -1 if that is impossible.
func (p *puller) syncs(user *account, dir string) (int, error) {
	trace := filepath.Join(dir, "trace")
	traced, err := user.traced(p.fetch(), syncCalls, trace)
	if traced == nil || err != nil {
		return -1, err
	}
	if _, err := timed(traced); err != nil {
		return 0, err
	}
	if _, err := timed(p.remove()); err != nil {
		return 0, err
	}
	return callsIn(trace)
}

// startRegistry runs Debian's docker-registry on the loopback until stop is called.
func startRegistry(dir string) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = l.Addr().String()
	l.Close()
	file := filepath.Join(dir, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: %s}\n", dir, addr)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", nil, err
	}
	cmd := exec.Command("docker-registry", "serve", file)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &output
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	if err := measure.Within(10*time.Second, 20*time.Millisecond, func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		stop()
		return "", nil, fmt.Errorf("docker-registry does not answer: %w: %s", err, output.String())
	}
	return addr, stop, nil
}
