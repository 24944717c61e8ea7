package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// serving returns a Plan whose pod answers with a greeting at host port 8080.
func serving(t *testing.T) *pod.Plan {
	t.Helper()
	testenv.LoopbackUp(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a",
		"mkdir /tmp/www; echo hello > /tmp/www/index.html; exec httpd -f -p 80 -h /tmp/www")})
	plan.Ports = []pod.Port{{Container: "a", Protocol: "TCP", Number: 80, HostPort: 8080}, {Container: "a", Protocol: "UDP", Number: 53, HostPort: 8080}}
	return plan
}

// get sends a request to the host port, and returns the body of the answer.
func get(path string) (string, error) {
	c, err := net.DialTimeout("tcp", "127.0.0.1:8080", time.Minute)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", path)
	b, err := io.ReadAll(c)
	_, body, ok := strings.Cut(string(b), "\n\n")
	if !ok {
		_, body, ok = strings.Cut(string(b), "\r\n\r\n")
	}
	if err == nil && !ok {
		err = fmt.Errorf("the answer is %q", b)
	}
	return body, err
}

// fetch sends a request and checks the greeting.
func fetch() error {
	said, err := get("/")
	if err == nil && said != "hello\n" {
		err = fmt.Errorf("the answer is %q", said)
	}
	return err
}

// served repeats the request until there is an answer.
func served(t *testing.T, within time.Duration) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		if err = fetch(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// A connection wakes a hibernating supervisor, which hibernates again. The port belongs to the pod as long
// as the pod lives.
func TestAPortWakes(t *testing.T) {
	testenv.NoLeaks(t)
	w, podInit := hibernated(t, serving(t))
	served(t, time.Minute) // the server may not listen yet
	for range 3 {
		w.asleep(podInit)
		if err := fetch(); err != nil {
			t.Error(err)
		}
	}
	w.asleep(podInit)
	u, err := net.Dial("udp", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := u.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	w.awake(podInit)
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		l.Close()
		t.Error("somebody else gets the port")
	}
	if err := unix.Kill(podInit, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lock, err := w.place.WaitLock()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Fatalf("the port of a pod that has ended: %v", err)
	}
	l.Close()
}

// Whenever its supervisor is killed, no connection is refused, and later ones are served within two
// seconds.
func TestNoConnectionIsRefused(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, serving(t))
	w.until(running)
	served(t, time.Minute)
	supervisor, podInit := w.processes()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// An open connection is lost with the supervisor.
				if err := fetch(); errors.Is(err, unix.ECONNREFUSED) {
					t.Error(err)
				}
			}
		})
	}
	for range 6 { // after several deaths in a row pod init delays the next supervisor
		begun := time.Now()
		if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for supervisorOf(podInit) == supervisor {
		}
		served(t, time.Minute)
		t.Logf("served again after %v", time.Since(begun))
		supervisor = w.awake(podInit)
	}
	close(stop)
	clients.Wait()
}
