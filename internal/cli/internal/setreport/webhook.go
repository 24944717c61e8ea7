// Package setreport posts how changes of sets have ended to a webhook, in the form of Flux's generic webhooks.
package setreport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// Webhook is where changes are reported.
type Webhook struct {
	address *url.URL
	key     []byte
	pauses  []time.Duration // before each repetition of a request
	client  http.Client
}

// tryTime is how long one request may take (notification-controller: docs/spec).
const tryTime = 15 * time.Second

// New returns the webhook of a set.
func New(r store.SetReport) (*Webhook, error) {
	to, err := url.Parse(r.URL)
	if err != nil || to.Scheme != "https" && to.Scheme != "http" || to.Host == "" {
		return nil, report.New(report.Usage, "", "--report cannot be %q: use https://HOST/PATH", r.URL)
	}
	w := &Webhook{address: to, pauses: []time.Duration{2 * time.Second, 8 * time.Second}, client: http.Client{Timeout: tryTime, CheckRedirect: sameServer}}
	if r.KeyFile == "" {
		return w, nil
	}
	if w.key, err = os.ReadFile(r.KeyFile); err != nil {
		return nil, fmt.Errorf("read the key of reports: %w", err)
	}
	if w.key = bytes.TrimRight(w.key, "\r\n"); len(w.key) == 0 {
		return nil, report.New(report.Usage, "", "--report-key %s has no key: it is empty", r.KeyFile)
	}
	return w, nil
}

// sameServer allows redirects of the request, body included, on the same server: another one may not be meant to know it.
func sameServer(to *http.Request, via []*http.Request) error {
	first := via[0]
	if to.URL.Scheme != first.URL.Scheme || to.URL.Host != first.URL.Host || to.Method != first.Method || len(via) > 9 {
		return fmt.Errorf("it redirects to %s://%s", to.URL.Scheme, to.URL.Host)
	}
	return nil
}

// Post reports how a change of a set has ended.
func (w *Webhook) Post(ctx context.Context, set string, change store.SetChange) error {
	body, err := json.Marshal(newEvent(set, change))
	for try := 0; err == nil; try++ {
		again, failed := w.try(ctx, body)
		if failed == nil {
			return nil
		}
		if !again || try == len(w.pauses) || sleep.For(ctx, w.pauses[try]) != nil {
			err = failed
		}
	}
	return fmt.Errorf("report the change of set %s to %s: %w", set, w.address.Host, err)
}

// try sends the request once. again reports whether another try may succeed.
func (w *Webhook) try(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address.String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Gotk-Component", controller)
	r.Header.Set("User-Agent", controller)
	if w.key != nil {
		mac := hmac.New(sha256.New, w.key)
		mac.Write(body)
		r.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	answer, err := w.client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the URL, which may have a secret
		}
		return answer == nil, err // there is an answer if it redirects to another server
	}
	answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	return answer.StatusCode >= 500, fmt.Errorf("it answers %s", report.Escape(answer.Status))
}
