package podclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Connect returns a connection to a port of the pod's localhost.
func Connect(p store.Pod, port int) (conn *net.TCPConn, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = Retry(ctx, p, func() error {
		supervisor, err := Send(ctx, p, wire.Request{Verb: wire.Connect, Connect: &wire.ConnectRequest{Port: port}})
		if err != nil {
			return err
		}
		defer supervisor.Close()
		frame, files, err := wire.ReadFrame(supervisor)
		defer CloseAll(files)
		switch {
		case err != nil:
			return err
		case frame.Error != nil:
			return errors.New(frame.Error.Message)
		case len(files) != 1:
			return fmt.Errorf("the supervisor sent %d connections", len(files))
		}
		conn, err = tcpOf(files[0])
		return err
	})
	return conn, err
}

func tcpOf(file *os.File) (*net.TCPConn, error) {
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("the supervisor sent a %T", c)
	}
	return t, nil
}
