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
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
	bring        func() *exec.Cmd
	forget       func() *exec.Cmd
}

// measurePulls runs a registry; the engines take turns to pull and load.
func measurePulls(who *account, ours *podrun, peer *podman, work string, rounds int) (map[string]map[string]pullCost, error) {
	// This process adopts the engines' background processes, which count.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a reaper: %w", err)
	}
	dir := filepath.Join(work, "pulls")
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
	copied := filepath.Join(dir, "copied")
	if err := os.MkdirAll(copied, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chown(copied, int(who.uid), int(who.gid)); err != nil {
		return nil, err
	}
	copied = filepath.Join(copied, "image")
	oursOff := func() *exec.Cmd { return ours.run("image", "rm", ref) }
	peersOff := func() *exec.Cmd { return peer.run("rmi", "-f", ref) }
	all := []puller{
		{"pull", ours.name(), func() *exec.Cmd { return ours.run("image", "pull", ref) }, oursOff},
		{"pull", peer.name(), func() *exec.Cmd { return peer.run("pull", "-q", "--tls-verify=false", ref) }, peersOff},
		{"pull", "skopeo", func() *exec.Cmd {
			return who.command(peer.env, "skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", "docker://"+ref, "dir:"+copied)
		}, func() *exec.Cmd { return who.command(nil, "rm", "-r", copied) }},
		{"load", ours.name(), func() *exec.Cmd { return ours.run("image", "load", archive) }, oursOff},
		{"load", peer.name(), func() *exec.Cmd { return peer.run("load", "-q", "-i", archive) }, peersOff},
	}
	runs := map[string]map[string][]pullCost{}
	for round := range rounds {
		for _, p := range all {
			c, err := p.once(who)
			if err != nil {
				return nil, err
			}
			put(runs, p.task, p.engine, append(runs[p.task][p.engine], c))
		}
		fmt.Fprintf(os.Stderr, "bench: images, round %d of %d\n", round+1, rounds)
	}
	costs := map[string]map[string]pullCost{}
	for _, p := range all {
		c := medianOf(runs[p.task][p.engine])
		if c.Syncs, err = p.syncs(who, dir); err != nil {
			return nil, err
		}
		put(costs, p.task, p.engine, c)
	}
	return costs, nil
}

// once fetches the image and removes it again.
func (p *puller) once(who *account) (pullCost, error) {
	done := make(chan struct{})
	peak := make(chan int64)
	go func() {
		var most int64
		for {
			most = max(most, who.descendantsPSS())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	cmd := p.bring()
	took, err := timed(cmd)
	close(done)
	c := pullCost{Milliseconds: float64(took.Microseconds()) / 1000, PSS: <-peak}
	if err != nil {
		return c, err
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.Written = u.Oublock * 512 // includes the processes that it has waited for
	}
	_, err = timed(p.forget())
	return c, err
}

// medianOf returns the median of each figure separately.
func medianOf(runs []pullCost) pullCost {
	middle := func(of func(pullCost) float64) float64 {
		var list []float64
		for _, r := range runs {
			list = append(list, of(r))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	return pullCost{
		Milliseconds: middle(func(c pullCost) float64 { return c.Milliseconds }),
		PSS:          int64(middle(func(c pullCost) float64 { return float64(c.PSS) })),
		Written:      int64(middle(func(c pullCost) float64 { return float64(c.Written) })),
	}
}

// syncs counts the calls that wait for the disk, -1 if that is impossible.
func (p *puller) syncs(who *account, dir string) (int, error) {
	trace := filepath.Join(dir, "trace")
	traced, err := who.traced(p.bring(), syncCalls, trace)
	if traced == nil || err != nil {
		return -1, err
	}
	if _, err := timed(traced); err != nil {
		return 0, err
	}
	if _, err := timed(p.forget()); err != nil {
		return 0, err
	}
	return countCalls(trace)
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
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return addr, stop, nil
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("docker-registry does not answer: %w: %s", err, output.String())
		}
	}
}
