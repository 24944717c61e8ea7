package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// subcommand runs the part of this program that runs in another namespace.
func subcommand(name string, args []string) error {
	switch {
	case name == "_wait":
		fmt.Println("ready")
		return unix.Pause()
	case name == "_serve":
		return serveAll()
	case name == "_client" && len(args) == 3:
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		if args[0] == "short" {
			return shortConnections(args[1], n)
		}
		return roundTrips(args[1], n)
	}
	return errors.New("no such subcommand")
}

// serveAll serves an echo, an echo of one byte, and 1 GiB over TLS.
func serveAll() error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	for port, f := range map[int]func(net.Conn){
		echoPort: func(c net.Conn) { io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) },
		shortPort: func(c net.Conn) {
			buf := make([]byte, 1)
			if _, err := c.Read(buf); err == nil {
				c.Write(buf)
			}
		},
	} {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer c.Close(); f(c) }()
			}
		}()
	}
	l, err := tls.Listen("tcp", fmt.Sprintf(":%d", tlsPort), &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return http.Serve(l, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Length", strconv.Itoa(gibibyte))
		chunk := make([]byte, 1<<20)
		for range gibibyte / len(chunk) {
			if _, err := out.Write(chunk); err != nil {
				return
			}
		}
	}))
}

const gibibyte = 1 << 30

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// roundTrips prints the median and the 99th percentile of the round trip of one byte, in
// microseconds.
func roundTrips(to string, n int) error {
	c, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	took := make([]float64, n)
	buf := make([]byte, 1)
	for i := range took {
		start := time.Now()
		if _, err := c.Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
		took[i] = float64(time.Since(start).Nanoseconds()) / 1000
	}
	slices.Sort(took)
	fmt.Println(took[n/2], took[n*99/100])
	return nil
}

// shortConnections makes n connections, one after the other, and prints how many per second succeed
// and how many break; the first must succeed.
func shortConnections(to string, n int) error {
	start, broken := time.Now(), 0
	for i := range n {
		if err := oneByte(to); err != nil {
			if i == 0 {
				return err
			}
			broken++
		}
	}
	fmt.Println(float64(n-broken)/time.Since(start).Seconds(), broken)
	return nil
}

// oneByte makes a whole connection. The client sends first: pasta loses what a server sends before
// that and then closes.
func oneByte(to string) error {
	c, err := net.DialTimeout("tcp", to, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 1)
	if _, err = c.Write(buf); err == nil {
		_, err = io.ReadFull(c, buf)
	}
	return err
}
