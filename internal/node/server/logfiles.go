package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/httpserver"
)

// nodeLogs serves the files of the host's log directory (kubelet: pkg/kubelet, ServeLogs), as far as the user may read
// them.
func (s *Server) nodeLogs(w http.ResponseWriter, r *http.Request) {
	root, err := os.OpenRoot(s.LogDir)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer root.Close()
	defer httpserver.HoldConn(r.Context())()
	out := &flushWriter{w: w, control: http.NewResponseController(w)}
	http.StripPrefix("/logs/", http.FileServerFS(logFiles{root})).ServeHTTP(slowResponse{w, out}, r)
}

// slowResponse is a response that may take long, as long as its client takes it.
type slowResponse struct {
	http.ResponseWriter
	out *flushWriter
}

func (r slowResponse) Write(b []byte) (int, error) { return r.out.Write(b) }

// logFiles are the directories and regular files below a directory. Links that lead out of it are refused.
type logFiles struct{ root *os.Root }

// Open implements fs.FS. A FIFO must not be opened: that would wait for a writer.
func (l logFiles) Open(name string) (fs.File, error) {
	refuse := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return refuse(fs.ErrInvalid)
	}
	file, err := l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(fs.ErrNotExist)
	case err != nil:
		return refuse(fs.ErrPermission)
	}
	info, err := file.Stat()
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		file.Close()
		return refuse(fs.ErrPermission)
	}
	return file, nil
}
