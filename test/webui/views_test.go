package webui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {team: sales}}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: app, image: busybox, imagePullPolicy: Never, command: [sh, -c, "while :; do sleep 1; done"]}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], storageClassName: local, hostPath: {path: /tmp}}
`

// TestViews follows objects from their creation to their removal in the views of the page.
func TestViews(t *testing.T) {
	m := newMachine(t)
	address := m.serve()
	root, _, _ := strings.Cut(address, "#")
	b := newBrowser(t)
	p := b.open(address)
	p.until("no pods are shown", `document.body.innerText.includes('No pods.')`)
	for _, v := range []struct{ hash, title, command string }{
		{"#/workloads", "Workloads", "podrun create deployment NAME --image=IMAGE"},
		{"#/services", "Services", "podrun apply -f FILE"},
		{"#/storage", "Storage", "podrun apply -f FILE"},
		{"#/events", "Events", "podrun up -d -f FILE"},
	} {
		p.open(v.hash)
		p.until("an empty view has a command", fmt.Sprintf(`document.title === %q && document.querySelector('main code')?.innerText === %q`, v.title+" – podrun", v.command))
		p.until("the navigation shows the view", fmt.Sprintf(`document.querySelector('header [aria-current=page]').hash === %q`, v.hash))
	}
	m.podrun(objects, "apply", "-f", "-")
	for _, v := range []struct{ hash, kind, section, key string }{
		{"#/services", "services", "Services", "default/shop"},
		{"#/storage", "pvc", "PersistentVolumeClaims", "default/data"},
		{"#/storage", "pv", "PersistentVolumes", "/disk"},
		{"#/workloads", "deployments", "Deployments", "default/shop"},
	} {
		p.open(v.hash)
		sameTable(p, m, v.section, v.key, "get", v.kind, "-A")
	}
	p.until("a Deployment gets ready by itself", `document.querySelector('tr[data-key="default/shop"] [data-head=READY]').innerText === '1/1'`)
	oneObject(p, m)
	filters(p)

	p.open("#/images")
	p.until("the image is listed", `document.querySelectorAll('section[aria-label=Images] tbody tr').length === 1`)
	m.podrun("", "image", "tag", "busybox", "other")
	p.until("another name of it comes by itself", `document.querySelectorAll('section[aria-label=Images] tbody tr').length === 2`)
	sameTable(p, m, "Images", "sha256:", "image", "ls")

	for _, hash := range []string{"#/images", "#/services", "#/storage", "#/events", "#/workloads", "#/Deployment/default/shop"} {
		p.open(hash)
		readableAt(t, p)
	}
	sets(t, p, m)
	p.open("#/services")
	m.podrun(objects, "delete", "-f", "-")
	p.until("what is removed goes by itself", `document.querySelector('main').innerText.includes('No services.')`)
	nothingUnexpected(t, b, root, p)
	m.end()
}

// sets: the first view has a table of sets while there are any, with what has failed.
func sets(t *testing.T, p *tab, m *machine) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.open("#/")
	const section = `document.querySelector('section[aria-label=Sets]')`
	p.until("without sets there is no table of them", section+`?.hidden`)
	write("prices.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prices}\n")
	m.podrun("", "follow", "--once", "--stable", "0s", "--name", "prices", dir)
	p.until("a set comes by itself", section+`.querySelector('tr[data-key=prices][data-mood=good]')?.innerText.includes('Ready')`)
	readableAt(t, p)
	m.podrun("", "follow", "rm", "prices")
	p.until("a set goes by itself", section+`.hidden`)
}

// sameTable: a table gets the columns and the cells that a command prints, apart from elapsed time.
// The page follows a change later than the command: both are read again until they agree.
func sameTable(p *tab, m *machine, section, key string, command ...string) {
	p.b.t.Helper()
	p.until("the row "+key+" is shown", fmt.Sprintf(`document.querySelector('section[aria-label=%s] tr[data-key*=%q]')`, section, key))
	p.agrees(section, func() string {
		lines := strings.Split(strings.TrimSpace(m.podrun("", command...)), "\n")
		var got [][]string
		p.b.must(p.eval(fmt.Sprintf(`[...document.querySelectorAll('section[aria-label=%s] tr')].map(r => [...r.children].map(c => c.textContent))`, section), &got))
		return tableDifference(got, lines)
	})
}

// tableDifference describes how the rows of a table differ from a command's lines. It is empty if they agree.
func tableDifference(rows [][]string, lines []string) string {
	if len(rows) != len(lines) {
		return fmt.Sprintf("%d rows instead of %d: %q", len(rows), len(lines), rows)
	}
	head := strings.Join(rows[0], " ")
	if want := strings.Join(strings.Fields(lines[0]), " "); head != want {
		return fmt.Sprintf("the columns are %q instead of %q", head, want)
	}
	for i, row := range rows[1:] {
		for _, cell := range row {
			elapsed := strings.Trim(cell, "0123456789smhd ago") == ""
			if !elapsed && !strings.Contains(lines[i+1], cell) {
				return fmt.Sprintf("%q is not in %q", cell, lines[i+1])
			}
		}
	}
	return ""
}

// sameYAML: the YAML of an object is the same as of get.
func sameYAML(p *tab, m *machine, object ...string) {
	p.b.t.Helper()
	p.until("the YAML is shown", `document.querySelector('pre.yaml').textContent`)
	p.agrees("the YAML", func() string {
		var got string
		p.b.must(p.eval(`document.querySelector('pre.yaml').textContent`, &got))
		return cmp.Diff(m.podrun("", append(append([]string{"get"}, object...), "-o", "yaml")...), got)
	})
}

// oneObject: an object has a view with its YAML.
func oneObject(p *tab, m *machine) {
	p.click(`tr[data-key="default/shop"] a`)
	p.until("an object is opened", `location.hash === '#/Deployment/default/shop' && document.querySelector('h1').innerText === 'shop'`)
	sameYAML(p, m, "deployment", "shop")
	p.until("its labels are shown", `document.querySelector('.facts').innerText.includes('team=sales')`)
	p.key("Escape", "")
	p.until("a key leads back to the list", `location.hash === '#/workloads' && document.querySelector('h1').innerText === 'Workloads'`)
}

// filters: words select objects by name, label and state, and stay in the address.
func filters(p *tab) {
	const shop = `document.querySelector('tr[data-key="default/shop"]')`
	p.key("/", "/")
	p.until("a key goes to the filter", `document.activeElement.id === 'filter'`)
	p.write("#filter", "team=sales shop")
	p.until("a label selects", shop+` && document.querySelector('.filter .count').innerText === '1 of 1' && location.hash === '#/workloads?q=team%3Dsales+shop'`)
	p.do("Page.reload", nil)
	p.until("a reload keeps the filter", shop+` && document.querySelector('#filter').value === 'team=sales shop'`)
	p.write("#filter", "team=sales nosuch")
	p.until("all words have to match", `!`+shop+` && document.querySelector('main').innerText.includes('Nothing matches the filter.')`)
	p.eval(`document.querySelector('#filter').focus()`, nil)
	p.key("Escape", "")
	p.until("a key clears the filter", shop+` && location.hash === '#/workloads'`)
	p.open("#/")
	p.until("the pod is listed", `document.querySelector('section[aria-label=Pods] tbody tr')`)
	p.write("#filter", "running app=shop")
	p.until("state and label of a pod select", `document.querySelectorAll('section[aria-label=Pods] tbody tr').length === 1`)
	p.write("#filter", "crashloop")
	p.until("another state does not", `document.querySelectorAll('section[aria-label=Pods] tbody tr').length === 0`)
}
