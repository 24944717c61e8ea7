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
    ports: [{name: http, containerPort: 8080}]
    resources: {limits: {cpu: 500m, memory: 64Mi}}
    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 60}
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
	p.until("a key opens the pod", `location.hash === '#/pods/default/sample' && document.querySelector('h1').innerText.includes('sample')`)
	p.until("the opened view has the focus", `document.activeElement === document.querySelector('h1')`)
	containers(p)
	use(p)
	yaml(p, m)
	logs(p, m)
	for _, hash := range []string{"#/pods/default/sample/logs", "#/pods/default/sample", "#/"} {
		p.open(hash)
		readableAt(t, p)
	}
	theme(p)
	exits(p, m)

	nothingUnexpected(t, b, root, p, stranger)
	m.end()
	p.until("a page without a server reports it", `document.getElementById('link').innerText.includes('no connection')`)
}

// containers: a container has its state and its fields of the manifest.
func containers(p *tab) {
	const card = `document.querySelector('[data-container=app]').innerText`
	for _, text := range []string{"Running for ", "8080/TCP http", "cpu 500m, memory 64Mi", "exec true every 60s", "busybox"} {
		p.until("the container has "+text, card+fmt.Sprintf(`.includes(%q)`, text))
	}
	p.until("the init container has ended", `document.querySelector('[data-container=prepare]').innerText.includes('Completed (exit code 0')`)
}

// yaml: the YAML of a pod is the same as of get.
func yaml(p *tab, m *machine) {
	p.click(`.tabs a:nth-child(3)`)
	sameYAML(p, m, "pod", "sample")
	p.eval(`history.back()`, nil)
	p.until("back leads to the overview", `location.hash === '#/pods/default/sample' && document.querySelector('figure')`)
	p.eval(`history.forward()`, nil)
	p.until("forward leads to the YAML", `document.querySelector('pre.yaml').textContent.includes('kind: Pod')`)
	p.do("Page.reload", nil)
	p.until("a reload shows the same", `location.hash === '#/pods/default/sample/yaml' && document.querySelector('pre.yaml').textContent.includes('kind: Pod')`)
}

// theme: the choice of colours is kept.
func theme(p *tab) {
	const ground = `getComputedStyle(document.body).backgroundColor`
	var light, dark string
	p.prefer("light")
	p.b.must(p.eval(ground, &light))
	p.click("#theme") // from system to light
	p.click("#theme")
	p.b.must(p.eval(ground, &dark))
	if light == dark {
		p.b.t.Errorf("light and dark are both %s", dark)
	}
	p.do("Page.reload", nil)
	p.until("a reload keeps the choice", fmt.Sprintf(`document.readyState === 'complete' && document.getElementById('theme').innerText === 'Dark' && %s === %q`, ground, dark))
	p.click("#theme")
	p.until("the system decides again", fmt.Sprintf(`%s === %q`, ground, light))
}

// logs: log lines appear as inert text.
func logs(p *tab, m *machine) {
	p.click(`.tabs a:nth-child(2)`)
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
	p.until("the end is in view", `(l => l.scrollTop + l.clientHeight >= l.scrollHeight - 2)(document.querySelector('.log'))`)

	const search = `.tools input[type=search]`
	p.write(search, "LINE-1999")
	p.until("a search counts lines", `document.querySelector('.tools .count').innerText === '10 lines'`) // line-1999 itself has left
	p.until("matches are marked", `[...document.querySelectorAll('.log mark')].every(m => m.innerText === 'line-1999')`)
	p.until("the search is in the address", `location.hash.endsWith('?q=LINE-1999')`)
	p.eval(fmt.Sprintf(`document.querySelector(%q).focus()`, search), nil)
	p.key("Enter", "\r")
	p.until("a key goes to a match, and the log stays there", `document.querySelector('mark.current') && !document.querySelector('[name=follow]').checked`)
	p.click("[name='only matches']")
	p.until("only matches are shown", log+`.trim().split('\n').length === 10`)
	p.key("Escape", "")
	p.until("a key clears the search", `document.querySelectorAll('.log mark').length === 0 && location.hash === '#/pods/default/sample/logs'`)
	p.click("[name='only matches']")
	p.click("[name=follow]")
	p.until("following goes to the end", `(l => l.scrollTop + l.clientHeight >= l.scrollHeight - 2)(document.querySelector('.log'))`)
	p.eval(`document.querySelector('.log').scrollTop = 0`, nil)
	p.until("scrolling stops following", `!document.querySelector('[name=follow]').checked`)
	m.podrun("", "exec", "sample", "-c", "app", "--", "sh", "-c", "echo the latest >>/v/lines")
	p.until("a line comes without moving the log", log+`.includes('the latest') && document.querySelector('.log').scrollTop === 0`)
	p.click("[name=follow]")
	p.until("following goes to the end", `(l => l.scrollTop + l.clientHeight >= l.scrollHeight - 2)(document.querySelector('.log'))`)
	p.click("[name='previous instance']")
	p.until("there is no previous instance", `document.querySelector('section[aria-label=Logs]').innerText.includes('no earlier instance')`)
	p.click("[name='previous instance']")
	p.until("the log is back", log+`.includes('the latest')`)
}

// open goes to a view of the page.
func (p *tab) open(hash string) {
	p.b.t.Helper()
	p.b.must(p.eval(fmt.Sprintf(`location.hash = %q`, hash), nil))
	p.until("the view "+hash+" is open", fmt.Sprintf(`document.querySelector('main').dataset.view === %q`, hash))
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
	p.until("a chart has a text alternative", `/^Memory: [0-9]+(Ki|Mi) now/.test(document.querySelectorAll('figure .plot')[1].getAttribute('aria-label'))`)
}

// readableAt: the page is readable on a telephone, and in dark mode.
func readableAt(t *testing.T, p *tab) {
	for _, scheme := range []string{"dark", "light"} {
		p.prefer(scheme)
		for _, width := range []int{320, 360, 1200} {
			p.size(width, 800)
			var found struct {
				Width      int
				Dark       bool
				Unreadable []string
				Nameless   []string
				Heads      int
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
			if len(found.Nameless) > 0 || found.Heads != 1 {
				t.Errorf("%s, %d wide: a screen reader has no name for %q, and finds %d headings of the first level", scheme, width, found.Nameless, found.Heads)
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
	const named = e => e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-labelledby')
	const nameless = [...document.querySelectorAll('a, button, input, select, table, section, article, nav, [role=img], [tabindex="0"]')].filter(e => !named(e)).map(e => e.outerHTML.slice(0, 80))
	const heads = document.querySelectorAll('h1').length
	return { nameless, heads, width: document.documentElement.scrollWidth, dark: light(getComputedStyle(document.body).backgroundColor) < 0.2, unreadable }
})()`

// exits: the page shows the end of a pod without a reload, in the pod's view and in the list.
func exits(p *tab, m *machine) {
	p.open("#/pods/default/sample")
	m.command(p.b.t.Context(), "exec", "sample", "-c", "app", "--", "touch", "/v/end").Run() // it may end with the container
	p.until("the status changes by itself", `document.getElementById('status').innerText === 'Error'`)
	p.until("the exit code of the container is shown", `document.querySelector('section[aria-label=Containers]').innerText.includes('exit code 3')`)
	p.until("its termination message is text", "document.querySelector('section[aria-label=Containers]').innerText.includes('`<b>the end</b>`')")
	p.open("#/pods/default/sample/logs")
	p.until("what it wrote stays", `document.querySelector('.log').innerText.includes('line-20000')`)
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
			if !strings.HasPrefix(r, "GET "+root) || strings.Contains(r, "token=") {
				t.Errorf("the page asked for %s", r)
			}
		}
	}
}
