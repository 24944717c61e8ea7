package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/program"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/registry"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/report"
)

// EntryPoints returns the re-exec entry points of the image program.
func EntryPoints() map[string]func(args []string) int {
	entryPoints := layer.EntryPoints()
	entryPoints[protocol.EntryImage] = main
	return entryPoints
}

// Memory is the memory limit of Go in the image program, in bytes. Without a limit the garbage collector
// would use twice as much.
const Memory = 24 << 20

// main serves the connection of the process that started this one.
func main([]string) int {
	debug.SetMemoryLimit(Memory)
	// The terminal and systemd send these to the parent too, which decides. They are not ignored, because
	// the unpackers would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	unix.CloseOnExec(protocol.FDImageSocket)
	unix.CloseOnExec(protocol.FDImageOutput)
	file := os.NewFile(protocol.FDImageSocket, "connection")
	conn, err := net.FileConn(file)
	if err != nil {
		report.Print(os.Stderr, report.New(report.Internal, "podrun starts the image program", "the image program requires its connection: %w", err))
		return 2
	}
	file.Close()
	if !serve(conn, leaveTime) {
		return 1
	}
	return 0
}

// server serves one connection.
type server struct {
	sending sync.Mutex
	conn    net.Conn

	mu      sync.Mutex
	stores  map[string]Backend // by their directories: parallel pulls share limits
	cancels map[int]context.CancelFunc
}

// serve runs requests until the connection ends, and then cancels the ones that run. It reports whether they ended within
// the time leave.
func serve(conn net.Conn, leave time.Duration) bool {
	s := &server{conn: conn, stores: map[string]Backend{}, cancels: map[int]context.CancelFunc{}}
	go s.watchMemory()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for requests := json.NewDecoder(conn); ; {
		var r program.Request
		if requests.Decode(&r) != nil {
			break
		}
		s.mu.Lock()
		if r.Op == program.Cancel {
			if stop := s.cancels[r.ID]; stop != nil {
				stop()
			}
			s.mu.Unlock()
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		s.cancels[r.ID] = stop
		s.mu.Unlock()
		running.Go(func() {
			f, err := s.run(ctx, r)
			f.ID, f.Done, f.Error = r.ID, true, program.EncodeError(err)
			s.send(f)
			s.mu.Lock()
			delete(s.cancels, r.ID)
			s.mu.Unlock()
			stop()
		})
	}
	cancel()
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(leave): // a request that waits for the kernel, as for a FIFO or a network file system, does not end
		return false
	}
}

// leaveTime is how long cancelled requests may take.
const leaveTime = 5 * time.Second

// send sends a frame. If that fails, the connection has ended, and serve cancels everything.
func (s *server) send(f program.Frame) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = json.NewEncoder(s.conn).Encode(f)
}

func (s *server) store(dir string) (Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.stores[dir]; ok {
		return known, nil
	}
	opened, err := records.Open(dir)
	if err != nil {
		return Backend{}, err
	}
	s.stores[dir] = New(opened)
	return s.stores[dir], nil
}

// run runs a request and returns the last frame's content.
func (s *server) run(ctx context.Context, r program.Request) (f program.Frame, err error) {
	switch r.Op {
	case program.Login:
		f.Text, err = registry.Login(ctx, r.Account, r.Options)
		return f, err
	case program.Logout:
		return f, registry.Logout(r.Account.Registry, r.Options)
	case program.LoginUser:
		f.Text, err = registry.LoginUser(r.Account.Registry, r.Options)
		return f, err
	case program.Registries:
		f.Text, err = registry.DescribeConfig()
		return f, err
	}
	in, err := s.store(r.Store)
	if err != nil {
		return f, err
	}
	onProgress := func(p api.Progress) { s.send(program.Frame{ID: r.ID, Progress: &p}) }
	r.Options.Progress, r.SaveOptions.Progress = onProgress, onProgress
	r.Options.BeforePull = func() { s.send(program.Frame{ID: r.ID, Begun: true}) }
	switch r.Op {
	case program.Pull:
		f.Added = make([]api.Added, 1)
		f.Added[0], err = in.Pull(ctx, r.Ref, r.Options)
	case program.Load:
		f.Added, err = in.Load(ctx, r.Location, onProgress)
	case program.Import:
		f.Added = make([]api.Added, 1)
		f.Added[0], err = in.Import(ctx, r.Location.Path, r.Ref)
	case program.Save:
		err = save(ctx, in, r)
	case program.Push:
		f.Text, err = in.Push(ctx, r.Ref, r.To, r.Options)
	case program.PushTree:
		f.Text, err = in.PushTree(ctx, r.Location.Path, r.To, r.Annotations, r.Files, r.Options)
	case program.Head:
		f.Text, err = in.Head(ctx, r.Ref, r.Options)
	case program.Candidates:
		f.Names, err = in.Candidates(ctx, r.Ref)
	default:
		err = report.New(report.Internal, "", "the image program has no request %q", r.Op)
	}
	return f, err
}

// save writes images to the directory of a request, or to the descriptor Output.
func save(ctx context.Context, in Backend, r program.Request) error {
	if r.Target.Dir != "" {
		return in.Save(ctx, r.Refs, r.Target, r.SaveOptions)
	}
	file := os.NewFile(protocol.FDImageOutput, "archive")
	defer file.Close()
	w := bufio.NewWriterSize(file, 256<<10)
	r.Target.Out = w
	if err := in.Save(ctx, r.Refs, r.Target, r.SaveOptions); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}
