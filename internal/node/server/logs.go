package server

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/httpserver"
)

// logs writes the log of a container.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	p, container, ok := s.target(w, r)
	if !ok {
		return
	}
	o, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer httpserver.HoldConn(r.Context())()
	out := &flushWriter{w: w, control: http.NewResponseController(w)}
	if err := s.Pods.Logs(r.Context(), p, container, o, out); err != nil && !out.written {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// flushWriter sends every write at once, to a client that takes it.
type flushWriter struct {
	w       io.Writer
	control *http.ResponseController
	written bool
}

func (f *flushWriter) Write(b []byte) (int, error) {
	f.written = true
	if err := f.control.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	n, err := f.w.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// logOptions reads the options of a log from a query (k8s.io/api/core/v1 PodLogOptions).
func logOptions(query url.Values) (o *corev1.PodLogOptions, err error) {
	o = &corev1.PodLogOptions{}
	for name := range query {
		value := query.Get(name)
		switch name {
		case "follow":
			o.Follow, err = strconv.ParseBool(value)
		case "previous":
			o.Previous, err = strconv.ParseBool(value)
		case "timestamps":
			o.Timestamps, err = strconv.ParseBool(value)
		case "tailLines":
			o.TailLines, err = parseNumber(value, 0)
		case "sinceSeconds":
			o.SinceSeconds, err = parseNumber(value, 1)
		case "limitBytes":
			o.LimitBytes, err = parseNumber(value, 1)
		case "sinceTime":
			var moment time.Time
			moment, err = time.Parse(time.RFC3339Nano, value)
			o.SinceTime = new(metav1.NewTime(moment))
		case "stream":
			o.Stream = &value
			if value != corev1.LogStreamAll && value != corev1.LogStreamStdout && value != corev1.LogStreamStderr {
				err = fmt.Errorf("it is not one of All, Stdout, Stderr")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the parameter %s=%q: %w", name, value, err)
		}
	}
	if o.SinceSeconds != nil && o.SinceTime != nil {
		return nil, fmt.Errorf("only one of sinceSeconds and sinceTime may be given")
	}
	return o, nil
}

// parseNumber reads a number that is not below a minimum.
func parseNumber(text string, least int64) (*int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < least {
		err = fmt.Errorf("it is less than %d", least)
	}
	return &n, err
}
