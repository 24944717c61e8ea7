package webui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// browser is a headless Chromium, controlled by its DevTools protocol over a pair of pipes:
// messages are JSON that ends with a zero byte. Libraries for this protocol contain its whole
// vocabulary; the tests need a dozen methods.
type browser struct {
	t      *testing.T
	to     *os.File
	closed chan struct{} // closed when its output ends

	mu      sync.Mutex
	last    int
	answers map[int]chan message
	tabs    map[string]*tab // by session
}

// message is a message of either side.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

const program = "chromium-headless-shell"

// newBrowser starts a browser, which ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(program, "--remote-debugging-pipe", "--user-data-dir="+home, "--no-first-run", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-breakpad", "--disable-crash-reporter", "--disable-component-update", "--disable-background-networking",
		"--font-render-hinting=none", "--disable-lcd-text", "--hide-scrollbars", "--force-color-profile=srgb", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{theirs, theirEnd}
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	theirs.Close()
	theirEnd.Close()
	b := &browser{t: t, to: to, closed: make(chan struct{}), answers: map[int]chan message{}, tabs: map[string]*tab{}}
	go b.listen(from)
	t.Cleanup(func() {
		to.Close() // it exits when its pipe closes
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(stepTimeout):
			t.Errorf("%s does not end", program)
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // remaining helper processes
		<-ended
		<-b.closed
		if t.Failed() {
			t.Logf("%s: %s", program, log.String())
		}
	})
	return b
}

// listen reads the browser's messages.
func (b *browser) listen(from *os.File) {
	defer close(b.closed)
	defer from.Close()
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; answer != nil {
			answer <- m.message
			delete(b.answers, m.ID)
		} else if tab := b.tabs[m.Session]; tab != nil {
			tab.event(m.Method, m.Params)
		}
		b.mu.Unlock()
	}
}

// ask sends a request and waits for the answer.
func (b *browser) ask(session, method string, params, result any) error {
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, Session: session, Method: method, Params: params}
	answer := make(chan message, 1)
	b.answers[m.ID] = answer
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), stepTimeout)
	defer cancel()
	select {
	case m := <-answer:
		switch {
		case m.Error != nil:
			return errors.New(m.Error.Message)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		}
		return nil
	case <-b.closed:
		return errors.New("the browser has ended")
	case <-ctx.Done():
		return fmt.Errorf("no answer to %s", method)
	}
}

// tab is an open page.
type tab struct {
	b       *browser
	session string

	faults   []string // errors and warnings of the console; b.mu
	requests []string // methods and addresses that were requested; b.mu
}

// open opens a page. prepare, a script, runs before the page's scripts.
func (b *browser) open(address string, prepare ...string) *tab {
	b.t.Helper()
	var target struct{ TargetID string }
	b.must(b.ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target))
	var attached struct{ SessionID string }
	b.must(b.ask("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached))
	p := &tab{b: b, session: attached.SessionID}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		p.do(domain+".enable", nil)
	}
	for _, script := range prepare {
		p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script})
	}
	p.do("Page.navigate", map[string]any{"url": address})
	return p
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// event handles an event. b.mu is held.
func (p *tab) event(method string, params json.RawMessage) {
	var e struct {
		Type    string // of a call of the console
		Request struct{ Method, URL string }
		Entry   struct{ Level, Text, URL string }
	}
	json.Unmarshal(params, &e) // other formats are other events
	switch {
	case method == "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.Method+" "+e.Request.URL)
	case method == "Runtime.exceptionThrown",
		method == "Runtime.consoleAPICalled" && e.Type != "log" && e.Type != "debug",
		method == "Log.entryAdded" && e.Entry.Level != "verbose" && e.Entry.Level != "info":
		p.faults = append(p.faults, string(params))
	}
}

func (p *tab) do(method string, params any) {
	p.b.t.Helper()
	if err := p.b.ask(p.session, method, params, nil); err != nil {
		p.b.t.Fatalf("%s: %v", method, err)
	}
}

// eval evaluates an expression into result.
func (p *tab) eval(expression string, result any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	err := p.b.ask(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return fmt.Errorf("%s: %s", expression, got.ExceptionDetails)
	case result == nil:
		return nil
	}
	return json.Unmarshal(got.Result.Value, result)
}

// until waits until an expression of the page is true. A failing expression counts as false: the
// page may still be loading.
func (p *tab) until(what, expression string) {
	p.b.t.Helper()
	wait := fmt.Sprintf(`new Promise(ok => {
		const is = () => { try { return %s } catch { return false } }
		const poll = () => is() ? ok(true) : setTimeout(poll, 50)
		poll()
	})`, expression)
	var err error
	for deadline := time.Now().Add(stepTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = p.eval(wait, nil); err == nil {
			return
		}
	}
	var text string
	p.eval("location.href + '\\n' + document.body.innerText", &text) // for the message only
	p.b.t.Fatalf("never: %s: %v\nThe page has:\n%s", what, err, text)
}

// agrees waits until difference returns nothing: the page shows what a command prints.
func (p *tab) agrees(what string, difference func() string) {
	p.b.t.Helper()
	last := ""
	for deadline := time.Now().Add(stepTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = difference(); last == "" {
			return
		}
	}
	p.b.t.Fatalf("%s: %s", what, last)
}

// key presses a key.
func (p *tab) key(name, text string) {
	p.b.t.Helper()
	code := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "/": 191}[name]
	position := strings.Replace(name, "/", "Slash", 1)
	for _, kind := range []string{"keyDown", "keyUp"} {
		k := map[string]any{"type": kind, "key": name, "code": position, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			k["text"] = text
		}
		p.do("Input.dispatchKeyEvent", k)
	}
}

// size changes the size of the window.
func (p *tab) size(width, height int) {
	p.b.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
	p.until("the page has its new size", fmt.Sprintf(`innerWidth === %d`, width))
}

// prefer sets the colours that the system prefers: light or dark.
func (p *tab) prefer(scheme string) {
	p.b.t.Helper()
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// picture returns a picture of the window as PNG.
func (p *tab) picture() []byte {
	p.b.t.Helper()
	var got struct{ Data []byte }
	p.b.must(p.b.ask(p.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": false}, &got))
	return got.Data
}

// write puts a text into an input field, as typing does.
func (p *tab) write(field, text string) {
	p.b.t.Helper()
	p.b.must(p.eval(fmt.Sprintf(`(() => { const f = document.querySelector(%q); f.value = %q; f.dispatchEvent(new Event('input')) })()`, field, text), nil))
}

// click clicks on an element.
func (p *tab) click(element string) {
	p.b.t.Helper()
	p.b.must(p.eval(fmt.Sprintf(`document.querySelector(%q).click()`, element), nil))
}
