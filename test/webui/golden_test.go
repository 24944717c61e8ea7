package webui

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/testenv"
)

// still fixes what differs between machines and moments: the clock and the fonts (of the Debian packages
// fonts-inter and fonts-dejavu-core). The samples of a fixedSource are 2 seconds apart by its clock.
const still = `Date.now = () => 1772625600000
const parse = JSON.parse
JSON.parse = text => {
	const v = parse(text)
	if (v.every) v.every = 2
	return v
}
addEventListener('DOMContentLoaded', () => {
	const sheet = new CSSStyleSheet()
	sheet.replaceSync(':root { --sans: Inter !important; --mono: "DejaVu Sans Mono" !important; } *, ::before, ::after { animation: none !important; transition: none !important; caret-color: transparent !important; }')
	document.adoptedStyleSheets = [sheet]
})`

// TestPictures compares the page with pictures of it.
func TestPictures(t *testing.T) {
	testenv.Need(t, func() error {
		_, err := exec.LookPath(program)
		return err
	})
	b := newBrowser(t)
	p := b.open(serveFixed(t), still)
	p.do("Emulation.setTimezoneOverride", map[string]any{"timezoneId": "Etc/UTC"})
	drawn := fmt.Sprintf(`[...document.querySelectorAll('path.line')].some(l => l.dataset.points == %d)`, fixedSamples)
	p.until("all samples are there", drawn)
	p.until("the fonts of fonts-inter and fonts-dejavu-core are installed", `(c => {
		const width = font => { c.font = '40px ' + font; return c.measureText('illWWW').width }
		return width('Inter, monospace') !== width('monospace') && width('"DejaVu Sans Mono", sans-serif') !== width('sans-serif')
	})(document.createElement('canvas').getContext('2d'))`)
	const web = "#/pods/default/web-7d9c5b6f4-k2x8p"
	for _, v := range []struct {
		name, scheme, hash, ready string
		width, height             int
	}{
		{"pods-light", "light", "#/", drawn, 1280, 800},
		{"pods-dark", "dark", "#/", drawn, 1280, 800},
		{"pods-phone", "light", "#/", drawn, 360, 740},
		{"pod-light", "light", web, drawn, 1280, 800},
		{"pod-phone", "dark", web, drawn, 360, 740},
		{"logs-dark", "dark", web + "/logs?q=200", `document.querySelectorAll('mark').length >= 40`, 1280, 800},
		{"workloads-light", "light", "#/workloads", `document.querySelectorAll('main tbody tr').length === 5`, 1280, 800},
	} {
		p.prefer(v.scheme)
		p.size(v.width, v.height)
		p.open(v.hash)
		p.until("the view "+v.name, v.ready)
		p.eval(`document.activeElement.blur(); new Promise(ok => requestAnimationFrame(() => requestAnimationFrame(ok)))`, nil)
		checkPicture(t, filepath.Join("testdata", v.name+".png"), p.picture())
	}
	charts(p, web)
	nothingUnexpected(t, b, "http://127.0.0.1:", p)
}

// charts: a chart has numbers, times and the limit, and its points are readable with mouse and keys.
func charts(p *tab, pod string) {
	p.open(pod)
	const cpu, memory = `document.querySelectorAll('figure')[0]`, `document.querySelectorAll('figure')[1]`
	p.until("the limit is a line with its name", memory+`.querySelector('path.limit').getAttribute('d') === 'M0 0.0H300' && `+memory+`.querySelector('.limit-name').innerText === 'limit 128Mi'`)
	p.until("a limit below the top of the scale is between", cpu+`.querySelector('path.limit').getAttribute('d') === 'M0 37.5H300' && `+cpu+`.querySelector('.limit-name').innerText === 'limit 250m'`)
	p.until("a chart has a text alternative", memory+`.querySelector('.plot').getAttribute('aria-label') === 'Memory: 111Mi now, max 111Mi, limit 128Mi, the last 14m'`)
	p.until("the axes have numbers", `[...`+memory+`.querySelectorAll('.scale span, .times span')].map(s => s.innerText).join(' ') === '128Mi 64Mi 0 12:03 12:06 12:09 12:12'`)
	reads := func(text string) string {
		return fmt.Sprintf(memory+`.querySelector('.readout').innerText === %q`, text)
	}
	p.eval(memory+`.querySelector('.plot').focus()`, nil)
	p.key("ArrowLeft", "")
	p.until("a key reads the last point", reads("12:14:40  111Mi"))
	p.key("ArrowLeft", "")
	p.until("a key reads the point before", reads("12:14:38  111Mi"))
	p.eval(`document.activeElement.blur()`, nil)
	p.until("nothing is read any more", reads(""))
	var position struct{ X, Y float64 }
	p.b.must(p.eval(`(() => { const b = `+memory+`.querySelector('.plot').getBoundingClientRect(); return { x: b.left + b.width / 2, y: b.top + 20 } })()`, &position))
	p.do("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": position.X, "y": position.Y})
	p.until("the mouse reads the point below it", `/^12:07:[0-9]{2}  [0-9]+Mi$/.test(`+memory+`.querySelector('.readout').innerText)`)
	p.open("#/pods/default/postgres-0")
	p.until("a limit that is missing is named", cpu+`.querySelector('.range').innerText.endsWith('no limit enforced') && `+cpu+`.querySelector('path.limit').getAttribute('d') === ''`)
	p.open("#/pods/monitoring/collector-5x9wd")
	p.until("a limit far above the usage is at the edge", cpu+`.querySelector('.limit-name').innerText === 'limit 100m, above the scale'`)
}

// A block of the picture differs if the mean of a colour differs by more than maxDifference. Means of
// blocks hardly depend on how the edges of letters are smoothed, which a version of Chromium or of the
// font changes; a text or a colour that is another one, or a part that is moved, changes many blocks.
const (
	block         = 4   // pixels
	maxDifference = 20  // of 255
	sameVersion   = 0.5 // percent of the blocks that may differ
	otherVersion  = 3   // with another main version of Chromium than made the pictures
)

// checkPicture fails the test if a picture differs from the file. With -update it writes the file, else the
// new picture beside it.
func checkPicture(t *testing.T, file string, got []byte) {
	t.Helper()
	versionFile := filepath.Join("testdata", "chromium-version")
	if golden.Updating() {
		golden.Check(t, file, string(got))
		golden.Check(t, versionFile, browserVersion(t)+"\n")
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	made, err := os.ReadFile(versionFile)
	if err != nil {
		t.Fatal(err)
	}
	limit := sameVersion
	if strings.TrimSpace(string(made)) != browserVersion(t) {
		limit = otherVersion
	}
	differing, err := difference(want, got)
	if err != nil {
		t.Fatal(err)
	}
	if differing <= limit {
		return
	}
	fresh := strings.TrimSuffix(file, ".png") + ".new.png"
	if os.WriteFile(fresh, got, 0o644) != nil { // the tree belongs to another user
		fresh = filepath.Join(os.TempDir(), filepath.Base(fresh))
		if err := os.WriteFile(fresh, got, 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Errorf("%s: %.2f %% differ, more than %.1f %%: see %s; if that is meant, go test -update rewrites it", file, differing, limit, fresh)
}

// browserVersion returns the main version of the browser.
func browserVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(out), " ")
	main, _, _ := strings.Cut(version, ".")
	return main
}

// difference returns the percentage of blocks that differ.
func difference(want, got []byte) (float64, error) {
	a, err := decode(want)
	if err != nil {
		return 0, err
	}
	b, err := decode(got)
	if err != nil {
		return 0, err
	}
	if a.Rect != b.Rect {
		return 100, nil
	}
	all, differing := 0, 0
	for y := 0; y < a.Rect.Dy(); y += block {
		for x := 0; x < a.Rect.Dx(); x += block {
			all++
			if blockDiffers(a, b, image.Rect(x, y, x+block, y+block).Intersect(a.Rect)) {
				differing++
			}
		}
	}
	return 100 * float64(differing) / float64(all), nil
}

func decode(text []byte) (*image.RGBA, error) {
	from, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	to := image.NewRGBA(from.Bounds())
	draw.Draw(to, to.Rect, from, from.Bounds().Min, draw.Src)
	return to, nil
}

// blockDiffers compares the means of red, green and blue.
func blockDiffers(a, b *image.RGBA, r image.Rectangle) bool {
	var sum [3]int
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			i := a.PixOffset(x, y)
			for c := range sum {
				sum[c] += int(a.Pix[i+c]) - int(b.Pix[i+c])
			}
		}
	}
	for _, s := range sum {
		if max(s, -s) > maxDifference*r.Dx()*r.Dy() {
			return true
		}
	}
	return false
}

// TestDifference: a picture equals itself; a moved part is noticed.
func TestDifference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "pods-light.png"))
	if err != nil {
		t.Fatal(err)
	}
	same, err := difference(text, text)
	if err != nil || same != 0 {
		t.Errorf("a picture differs from itself by %v %%: %v", same, err)
	}
	from, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	moved := image.NewRGBA(from.Rect)
	draw.Draw(moved, moved.Rect, from, image.Pt(0, -8), draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, moved); err != nil {
		t.Fatal(err)
	}
	if got, err := difference(text, out.Bytes()); err != nil || got <= otherVersion {
		t.Errorf("a picture that is moved by 8 pixels differs by %v %%: %v", got, err)
	}
}
