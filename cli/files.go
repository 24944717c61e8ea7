package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// maxManifest bounds what is read of one file; a single document may have 1 MiB.
const maxManifest = 32 << 20

// read reads a manifest; "-" is standard input.
func (f *front) read(file string) ([]byte, error) {
	in := f.in
	switch {
	case isAddress(file):
		body, err := download(file)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		in = body
	case file != "-":
		opened, err := os.Open(file)
		if err != nil {
			return nil, unreadable(file, err)
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	switch {
	case err != nil:
		return nil, unreadable(file, err)
	case len(data) > maxManifest:
		return nil, report.New(report.Usage, "", "cannot read the manifest: %s is larger than %d MiB", shown(file), maxManifest>>20)
	}
	if file == "-" {
		f.in = &repeated{text: data}
	}
	return data, nil
}

// repeated is standard input for those who read it more than once: after its end it begins again.
type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	if r.at += n; n == 0 && len(p) > 0 {
		r.at = 0
		return 0, io.EOF
	}
	return n, nil
}

// unreadable is the error of a manifest that cannot be read.
func unreadable(file string, err error) error {
	switch {
	case file == "":
		return report.New(report.Usage, "", "cannot read the manifest: the file's name is empty")
	}
	return report.New(report.Usage, "", "cannot read the manifest: %w", err)
}

// shown is a file's name as messages have it.
func shown(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// source is the text of one file.
type source struct {
	name      string
	data      []byte
	namespace string // of objects that name none; "" is the default
	only      bool   // objects of another namespace are refused
}

// readAll reads files, all those of directories, and what is at addresses. What can be
// read is returned with an error too.
func (f *front) readAll(files []string) ([]source, error) {
	var sources []source
	var errs []error
	files, err := inDirectories(files)
	errs = append(errs, err)
	for _, file := range files {
		data, err := f.read(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sources = append(sources, source{shown(file), data, f.namespace, f.onlyNamespace != ""})
	}
	return sources, errors.Join(errs...)
}

// objects takes sources apart with one of manifest's functions. The mistakes of
// all of them come back together.
func objects(sources []source, take func(file string, data []byte, namespace string) ([]manifest.Object, error)) ([]manifest.Object, error) {
	var all []manifest.Object
	var errs []error
	for _, src := range sources {
		found, err := take(src.name, src.data, src.namespace)
		if err != nil {
			errs = append(errs, report.New(report.Usage, "", "%s is not a manifest that podrun can run\n%w", src.name, err))
			continue
		}
		for i := range found {
			errs = append(errs, src.foreign(&found[i]))
		}
		all = append(all, found...)
	}
	return all, errors.Join(errs...)
}

// foreign is the error for an object of another namespace than the one of -n, or nil.
func (s *source) foreign(o *manifest.Object) error {
	if !s.only || o.Value == nil || o.Value.GetNamespace() == "" || o.Value.GetNamespace() == s.namespace {
		return nil
	}
	return report.New(report.Usage, "omit -n, or change metadata.namespace", "%s: %s %s is in namespace %q, but -n is %q",
		where(o), strings.ToLower(o.Kind), o.Name(), o.Value.GetNamespace(), s.namespace)
}

// decoded are the objects of sources as they are written, of the namespace that they are in.
func decoded(sources []source) ([]manifest.Object, error) {
	return objects(sources, func(file string, data []byte, namespace string) ([]manifest.Object, error) {
		found, err := manifest.Decode(file, data)
		for _, o := range found {
			if o.Value != nil && o.Value.GetNamespace() == "" && o.Kind != string(pod.KindNamespace) {
				o.Value.SetNamespace(cmp.Or(namespace, remote.DefaultNamespace))
			}
		}
		return found, err
	})
}

// documents are the objects of files, by what becomes of them, each list in their order.
type documents struct {
	pods   []manifest.Object
	stored []manifest.Object // ConfigMaps, Secrets and the like: kept for pods to refer to
	idle   []manifest.Object // they mean nothing here

	workloads []manifest.Object // Deployments, Jobs and the like, which make pods
}

// load takes sources apart, or says everything that is wrong with any of them.
func load(sources []source) (documents, error) {
	all, err := objects(sources, manifest.LoadInNamespace)
	if err != nil {
		return documents{}, err
	}
	var docs documents
	first := map[string]string{}
	var errs []error
	for i := range all {
		o := &all[i]
		if o.Value == nil {
			docs.idle = append(docs.idle, *o)
			continue
		}
		key := strings.ToLower(o.Kind) + " " + o.Value.GetNamespace() + "/" + o.Name()
		if other, ok := first[key]; ok {
			errs = append(errs, report.New(report.Usage, "", "%s is there twice: in %s and in %s", key, other, where(o)))
			continue
		}
		first[key] = where(o)
		switch {
		case o.Pod != nil:
			takeFromNode(o.Pod)
			docs.pods = append(docs.pods, *o)
		case o.IsWorkload():
			docs.workloads = append(docs.workloads, *o)
		default:
			docs.stored = append(docs.stored, *o)
		}
	}
	for _, o := range append(slices.Clone(docs.pods), samples(docs.workloads)...) {
		for _, i := range manifest.Images(o.Pod) {
			if err := image.ValidateName(i.Reference); err != nil {
				errs = append(errs, fmt.Errorf("%s: cannot use image %s: %w", where(&o), i.Reference, err))
			}
		}
	}
	return docs, errors.Join(errs...)
}

func where(o *manifest.Object) string {
	return fmt.Sprintf("%s, document %d", o.File, o.Document)
}

// placesIn are the pods that files name, whatever else is in them: a pod must not
// become impossible to remove because its manifest is no longer valid.
func (f *front) placesIn(dirs store.Dirs, files []string) ([]store.Pod, error) {
	sources, err := f.readAll(files)
	if err != nil {
		return nil, err
	}
	named, err := decoded(sources)
	if err != nil {
		return nil, err
	}
	var places []store.Pod
	for _, o := range named {
		if o.Pod == nil {
			continue
		}
		p, err := place(dirs, o.Pod.Namespace, o.Pod.Name)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, nil
}
