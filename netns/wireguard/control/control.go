// Package control has the messages to the process of package wireguard, and its client. It does not link
// WireGuard.
package control

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Key is a key of Curve25519. Its text is base64, as that of wg(8).
type Key [32]byte

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, k[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(k) {
		return errors.New("a WireGuard key has 32 bytes, in base64")
	}
	copy(k[:], b)
	return nil
}

// Config is all that the process needs to know.
type Config struct {
	PrivateKey Key
	Port       uint16         // of UDP, in the host's network
	MTU        int            // of the tunnel when it is made
	Own        []netip.Prefix // the pods of this node: other nodes reach nothing else
	Peers      []Peer
}

// Peer is another node.
type Peer struct {
	PublicKey Key
	Endpoint  netip.AddrPort
	Networks  []netip.Prefix // its pods
}

// Reply is the answer to a Config.
type Reply struct {
	Error string `json:",omitempty"`
}

// Timeout limits an exchange of messages.
const Timeout = 30 * time.Second

// Send makes the process at a socket use a configuration from now on.
func Send(socket string, c *Config) error {
	err := send(socket, c)
	if err != nil {
		return fmt.Errorf("configure WireGuard: %w", err)
	}
	return nil
}

func send(socket string, c *Config) error {
	conn, err := net.DialTimeout("unix", socket, Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(c); err != nil {
		return err
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return err
	}
	if reply.Error != "" {
		return errors.New(reply.Error)
	}
	return nil
}
