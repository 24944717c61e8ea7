// Package webui opens the page of `podrun ui` in a real browser and checks its content, while pods
// of the built binary run.
package webui

import (
	"fmt"
	"strings"
	"testing"
)

// hostile is output of a container that attacks the reader's browser.
const hostile = `<img src=x onerror="window.taken=1"><script>window.taken=1</script>`

const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: sample, labels: {app: sample}}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - name: prepare
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, "touch /v/lines; echo prepared"]
    volumeMounts: [{name: v, mountPath: /v}]
  containers:
  - name: app
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, "tail -f /v/lines & while ! test -e /v/end; do sleep 0.2; done; echo '` + "`<b>the end</b>`" + `' >/dev/termination-log; exit 3"]
    volumeMounts: [{name: v, mountPath: /v}]
`

// TestPage follows one pod from its creation to its removal.
func TestPage(t *testing.T) {
	m := newMachine(t)
	address := m.serve()
	b := newBrowser(t)

	root, _, _ := strings.Cut(address, "#")
	stranger := b.open(root)
	stranger.until("without the token there is nothing", `document.querySelector('main').innerText.includes('prints an address with a token')`)

	p := b.open(address)
	p.until("no pods are shown", `document.body.innerText.includes('No pods.')`)
	p.until("the token is not left in the address", `location.hash === '#/'`)
	p.until("the machine is named", `document.getElementById('host').textContent !== ''`)

	m.podrun(manifest, "up", "-d", "-f", "-")
	row := `document.querySelector('tr[data-key="default/sample"]')`
	p.until("the pod comes by itself", row+`?.innerText.includes('Running')`)
	p.until("what it uses is drawn", fmt.Sprintf(`[...%s.querySelectorAll('path.line')].every(l => l.dataset.points >= 2 && l.getAttribute('d').includes('L'))`, row))
	p.until("its events are listed", `document.querySelector('section[aria-label=Events]').innerText.includes('default/sample{app}')`)

	p.eval(row+`.querySelector('a').focus()`, nil)
	p.key("Enter", "\r")
	p.until("a key opens the pod", `location.hash === '#/pods/default/sample' && document.querySelector('h2').innerText.includes('sample')`)
	logs(p, m)
	use(p)
	readableAt(t, p)
	exits(p, m)

	nothingUnexpected(t, b, root, p, stranger)
	m.end()
	p.until("a page without a server reports it", `document.getElementById('link').innerText.includes('no connection')`)
}

// logs: log lines appear as inert text.
func logs(p *tab, m *machine) {
	const log = `document.querySelector('.log').innerText`
	p.until("the log has what was written", log+`.includes('prepare prepared')`)
	m.podrun(hostile+"\n\x1b[31mred\x1b[0m \x1b]0;title\x07\n", "exec", "-i", "sample", "-c", "app", "--", "sh", "-c", "cat >>/v/lines")
	p.until("a line comes as it was written", log+fmt.Sprintf(`.includes(%q)`, hostile))
	p.until("control sequences are escaped", log+`.includes('red \\u001b]0;title\\u0007')`)
	p.until("a line is no markup", `document.querySelectorAll('main img, main script').length === 0 && window.taken === undefined`)

	choice := `document.querySelector('select')`
	p.eval(choice+`.value = 'prepare'; `+choice+`.dispatchEvent(new Event('change'))`, nil)
	p.until("one container's log is shown alone", log+`.trim() === 'prepared'`)
	p.until("the end of a log is shown", `document.body.innerText.includes('The log is complete.')`)
	p.eval(choice+`.value = ''; `+choice+`.dispatchEvent(new Event('change'))`, nil)

	// The page keeps the end of a long log.
	m.podrun("", "exec", "sample", "-c", "app", "--", "sh", "-c", "seq 1 20000 | sed s/^/line-/ >>/v/lines")
	p.until("the last of many lines is shown", log+`.includes('line-20000')`)
	p.until("of many lines the page keeps some", `document.querySelector('.log').childElementCount <= 2000`)
}

// use: the page draws resource usage continuously.
func use(p *tab) {
	const lines = `[...document.querySelectorAll('figure path.line')]`
	p.until("there is a chart for processors and one for memory", lines+`.length === 2 && `+lines+`.every(l => l.dataset.points >= 2)`)
	var before int
	if err := p.eval(`Number(document.querySelector('figure path.line').dataset.points)`, &before); err != nil {
		p.b.t.Fatal(err)
	}
	p.until("the charts go on", fmt.Sprintf(lines+`.every(l => l.dataset.points > %d)`, before))
	p.until("a chart has a text alternative", `/^Memory: [0-9]+(Ki|Mi) now/.test(document.querySelectorAll('figure svg')[1].getAttribute('aria-label'))`)
}

// readableAt: the page is readable on a telephone, and in dark mode.
func readableAt(t *testing.T, p *tab) {
	for _, scheme := range []string{"dark", "light"} {
		p.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
		for _, width := range []int{320, 1200} {
			p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
			p.until("the page has its new size", fmt.Sprintf(`innerWidth === %d`, width))
			var found struct {
				Width      int
				Dark       bool
				Unreadable []string
			}
			if err := p.eval(readable, &found); err != nil {
				t.Fatal(err)
			}
			if found.Width > width {
				t.Errorf("%s, %d wide: the page is %d wide", scheme, width, found.Width)
			}
			if found.Dark != (scheme == "dark") {
				t.Errorf("%s, %d wide: dark is %v", scheme, width, found.Dark)
			}
			if len(found.Unreadable) > 0 {
				t.Errorf("%s, %d wide: a contrast of less than 4.5: %q", scheme, width, found.Unreadable)
			}
		}
	}
}

// readable measures contrast as defined by WCAG: of every text with its background.
const readable = `(() => {
	const rgb = c => c.match(/[\d.]+/g).map(Number)
	const light = c => rgb(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor
			if (rgb(c)[3] !== 0) return c
		}
	}
	const unreadable = []
	for (const e of document.querySelectorAll('body, body *')) {
		if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue
		if (e.closest('select')) continue // the browser's own
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => x - y)
		if ((b + 0.05) / (a + 0.05) < 4.5) unreadable.push(e.className + ' ' + e.textContent.slice(0, 40))
	}
	return { width: document.documentElement.scrollWidth, dark: light(getComputedStyle(document.body).backgroundColor) < 0.2, unreadable }
})()`

// exits: the page shows the end of a pod without a reload, in the pod's view and in the list.
func exits(p *tab, m *machine) {
	m.command(p.b.t.Context(), "exec", "sample", "-c", "app", "--", "touch", "/v/end").Run() // it may end with the container
	p.until("the status changes by itself", `document.getElementById('status').innerText === 'Error'`)
	p.until("the exit code of the container is shown", `document.querySelector('section[aria-label=Containers]').innerText.includes('exit code 3')`)
	p.until("its termination message is text", "document.querySelector('section[aria-label=Containers]').innerText.includes('`<b>the end</b>`')")
	p.until("what it wrote stays", `document.querySelector('.log').innerText.includes('line-20000')`)
	p.eval(`document.querySelector('details').open = true`, nil)
	p.until("the whole object is there", `JSON.parse(document.querySelector('details pre').innerText).status.phase === 'Failed'`)
	m.podrun("", "down", "sample")
	p.until("a removed pod is shown as gone", `document.getElementById('status').innerText === 'gone'`)
	p.key("Escape", "")
	p.until("a key leads back to all pods", `location.hash === '#/' && document.body.innerText.includes('No pods.')`)
}

// nothingUnexpected: the console is empty, and the page requested nothing from elsewhere.
func nothingUnexpected(t *testing.T, b *browser, root string, tabs ...*tab) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range tabs {
		for _, f := range p.faults {
			t.Errorf("the console has: %s", f)
		}
		if len(p.requests) == 0 {
			t.Error("no request was seen: looked at the wrong thing")
		}
		for _, r := range p.requests {
			if !strings.HasPrefix(r, root) || strings.Contains(r, "token=") {
				t.Errorf("the page asked for %s", r)
			}
		}
	}
}
