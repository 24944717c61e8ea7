package image

import (
	"context"
	"io"
	"os"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/program"
)

// Program is the image program, for requests that need no store.
type Program struct{ client *program.Client }

// NewProgram returns the image program. find returns its path, and a function to be called once it runs.
func NewProgram(find func() (path string, started func(), err error)) *Program {
	return &Program{&program.Client{Find: find}}
}

// Login checks an account with its registry and stores it. It returns where.
func (p *Program) Login(ctx context.Context, a Account, o PullOptions) (string, error) {
	f, err := p.client.Do(ctx, program.Request{Op: program.Login, Account: a, Options: o}, nil, nil)
	return f.Text, err
}

// Logout removes a stored account, or with "" all of them.
func (p *Program) Logout(ctx context.Context, registry string, o PullOptions) error {
	_, err := p.client.Do(ctx, program.Request{Op: program.Logout, Account: Account{Registry: registry}, Options: o}, nil, nil)
	return err
}

// LoginUser returns the user whose account is used for a registry.
func (p *Program) LoginUser(ctx context.Context, registry string, o PullOptions) (string, error) {
	f, err := p.client.Do(ctx, program.Request{Op: program.LoginUser, Account: Account{Registry: registry}, Options: o}, nil, nil)
	return f.Text, err
}

// DescribeRegistries returns a sentence about how registries.conf(5) resolves names. Without such a file the
// program is not started.
func (p *Program) DescribeRegistries(ctx context.Context) (string, error) {
	if _, exist := shortNameFiles(); !exist {
		return "images come from the registry in their name, or docker.io; there is no registries.conf", nil
	}
	f, err := p.client.Do(ctx, program.Request{Op: program.Registries}, nil, nil)
	return f.Text, err
}

// remote adds images to a store with the image program.
type remote struct {
	*Program
	dir string
}

// Pull adds an image from a registry.
func (r remote) Pull(ctx context.Context, ref string, o api.PullOptions) (api.Added, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Pull, Store: r.dir, Ref: ref, Options: o}, func(f program.Frame) {
		if f.Begun && o.BeforePull != nil {
			o.BeforePull()
		}
		forwardProgress(f, o.Progress)
	}, nil)
	return first(f.Added), err
}

// Load adds the images of a file or a directory.
func (r remote) Load(ctx context.Context, p api.Location, onProgress func(api.Progress)) ([]api.Added, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Load, Store: r.dir, Location: p}, func(f program.Frame) { forwardProgress(f, onProgress) }, nil)
	return f.Added, err
}

// Import makes an image from the tar file of a root file system.
func (r remote) Import(ctx context.Context, path, name string) (api.Added, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Import, Store: r.dir, Location: api.Location{Path: path}, Ref: name}, nil, nil)
	return first(f.Added), err
}

// Save writes images into a directory or to a tar archive.
func (r remote) Save(ctx context.Context, refs []string, to api.Target, o api.SaveOptions) error {
	request := program.Request{Op: program.Save, Store: r.dir, Refs: refs, Target: to, SaveOptions: o}
	onProgress := func(f program.Frame) { forwardProgress(f, o.Progress) }
	out, isFile := to.Out.(*os.File)
	if to.Dir != "" || isFile {
		_, err := r.client.Do(ctx, request, onProgress, out)
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(to.Out, in)
		in.Close() // otherwise the program would wait for a reader
		copied <- err
	}()
	_, err = r.client.Do(ctx, request, onProgress, out)
	out.Close()
	if cerr := <-copied; cerr != nil {
		return cerr
	}
	return err
}

// PushTree writes the files of a directory to a registry; a file in files has the contents from there.
func (r remote) PushTree(ctx context.Context, dir, to string, annotations map[string]string, files map[string][]byte, o api.PullOptions) (string, error) {
	request := program.Request{Op: program.PushTree, Store: r.dir, Location: api.Location{Path: dir}, Files: files, To: to, Annotations: annotations, Options: o}
	f, err := r.client.Do(ctx, request, func(f program.Frame) { forwardProgress(f, o.Progress) }, nil)
	return f.Text, err
}

// Push writes an image to a registry.
func (r remote) Push(ctx context.Context, ref, to string, o api.PullOptions) (string, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Push, Store: r.dir, Ref: ref, To: to, Options: o}, func(f program.Frame) { forwardProgress(f, o.Progress) }, nil)
	return f.Text, err
}

// Candidates returns the names that a reference may stand for.
func (r remote) Candidates(ctx context.Context, ref string) ([]string, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Candidates, Store: r.dir, Ref: ref}, nil, nil)
	return f.Names, err
}

// Head returns the digest of a name in its registry.
func (r remote) Head(ctx context.Context, ref string, o api.PullOptions) (string, error) {
	f, err := r.client.Do(ctx, program.Request{Op: program.Head, Store: r.dir, Ref: ref, Options: o}, nil, nil)
	return f.Text, err
}

func forwardProgress(f program.Frame, onProgress func(api.Progress)) {
	if f.Progress != nil && onProgress != nil {
		onProgress(*f.Progress)
	}
}

func first(added []api.Added) api.Added {
	if len(added) == 0 {
		return api.Added{}
	}
	return added[0]
}
