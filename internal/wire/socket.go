package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A message is its length, four bytes, and that many bytes of JSON.
const (
	headSize   = 4
	maxMessage = 4 << 20
)

// WriteRequest sends the first message of a connection with its descriptors.
func WriteRequest(conn *net.UnixConn, req Request, files ...*os.File) error {
	return writeWithFiles(conn, req, files)
}

// WriteFrame sends one message to the client, with descriptors if the frame has any.
func WriteFrame(conn *net.UnixConn, f Frame, files ...*os.File) error {
	return writeWithFiles(conn, f, files)
}

func writeWithFiles(conn *net.UnixConn, v any, files []*os.File) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	b = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	n, _, err := conn.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = conn.Write(b[n:])
	}
	if err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

// WriteControl sends one message to the supervisor while an exec runs.
func WriteControl(conn *net.UnixConn, c Control) error { return writeWithFiles(conn, c, nil) }

// ReadControl reads one message from the client. At the end of the connection it returns io.EOF.
func ReadControl(conn *net.UnixConn) (Control, error) {
	var c Control
	files, err := readWithFiles(conn, &c)
	for _, f := range files {
		f.Close()
	}
	return c, err
}

// ReadRequest reads the first message of a connection and its descriptors, which the caller closes.
// It returns nil for a connection that ends without a byte.
func ReadRequest(conn *net.UnixConn) (*Request, []*os.File, error) {
	var req Request
	files, err := readWithFiles(conn, &req)
	if errors.Is(err, io.EOF) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return &req, files, nil
}

// ReadFrame reads one message from the supervisor and its descriptors, which the caller closes. At
// the end of the connection it returns io.EOF.
func ReadFrame(conn *net.UnixConn) (Frame, []*os.File, error) {
	var f Frame
	files, err := readWithFiles(conn, &f)
	return f, files, err
}

// readWithFiles reads one message. Its descriptors arrive with the header.
func readWithFiles(conn *net.UnixConn, v any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			files = nil
		}
	}()
	head, oob := make([]byte, headSize), make([]byte, unix.CmsgSpace(8*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(head, oob)
	if oobn > 0 {
		var perr error
		if files, perr = parseFiles(oob[:oobn]); perr != nil {
			return files, perr
		}
	}
	if n == 0 && (err == nil || errors.Is(err, io.EOF)) {
		return files, io.EOF
	}
	if err != nil {
		return files, fmt.Errorf("receive message: %w", err)
	}
	if err := readRest(conn, head[n:]); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return files, fmt.Errorf("receive message: %d bytes are more than %d", size, maxMessage)
	}
	body := make([]byte, size)
	if err := readRest(conn, body); err != nil {
		return files, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return files, fmt.Errorf("decode message: %w", err)
	}
	return files, nil
}

// readRest reads the rest of a message into b. The end of the connection is an error there.
func readRest(conn *net.UnixConn, b []byte) error {
	_, err := io.ReadFull(conn, b)
	if errors.Is(err, io.EOF) && len(b) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("receive message: %w", err)
	}
	return nil
}

// Peer returns the process at the other end of a connection, and its user.
func Peer(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("find the peer: %w", err)
	}
	var cred *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(cerr, err); err != nil {
		return nil, fmt.Errorf("find the peer: %w", err)
	}
	return cred, nil
}

func parseFiles(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, fmt.Errorf("receive descriptors: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}
