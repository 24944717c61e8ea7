package server

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/program"
)

// TestServeEndsWithItsParent: a request that waits for ever does not keep the program of a podrun that was killed.
func TestServeEndsWithItsParent(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "registries.conf")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_REGISTRIES_CONF", fifo)
	near, far := net.Pipe()
	ended := make(chan bool)
	go func() { ended <- serve(far, time.Millisecond) }()
	if err := json.NewEncoder(near).Encode(program.Request{ID: 1, Op: program.Registries}); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the request reads the file
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	near.Close()
	if <-ended {
		t.Error("the request was answered")
	}
}
