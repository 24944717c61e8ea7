package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
)

// contentType is that of Prometheus' text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// stall is how long a client may take to send its request, and to read the answer.
const stall = 30 * time.Second

func (o *options) listen() (net.Listener, error) {
	if path := o.value["socket"]; path != "" {
		return cmdutil.ListenPrivately(path, "metrics")
	}
	l, err := net.Listen("tcp", o.value["listen"])
	if err != nil {
		return nil, report.New(report.Failure, cmdutil.ListenHint(err, "ss -ltnp shows which process uses this port"), "cannot serve metrics: %w", err)
	}
	return l, nil
}

// serve answers requests until ctx ends.
func (o *options) serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	var one sync.Mutex // one scrape at a time: a second one would only take longer
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		one.Lock()
		text, err := o.text()
		one.Unlock()
		if err != nil {
			o.env.Warn(err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Write(text)
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: stall, WriteTimeout: stall, IdleTimeout: 2 * time.Minute}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	where := "http://" + l.Addr().String()
	if l.Addr().Network() == "unix" {
		where = "unix:" + l.Addr().String()
	}
	if _, err := fmt.Fprintf(o.env.ErrOut, "podrun: serving metrics at %s/metrics\n", report.Escape(where)); err != nil {
		return err
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
