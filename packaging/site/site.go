package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"
)

// repository is where links to files lead that are no pages.
const repository = "https://github.com/podrun/podrun/blob/main/"

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page is a document of the repository.
type page struct {
	file  string // its path in the repository, with slashes
	title string
	ids   map[string]bool // anchors
	body  *nethtml.Node
}

// url returns the path of the page in the site: the file's path, so that relative links stay valid.
func (p *page) url() string {
	dir, name := path.Split(p.file)
	if name == "README.md" {
		return dir + "index.html"
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html"
}

// site is a site while it is made.
type site struct {
	top, out string
	pages    map[string]*page // by file
	errs     []error
}

// makeSite makes the site of the repository top in the directory out, and returns the number of pages.
func makeSite(top, out string) (int, error) {
	s := &site{top: top, out: out, pages: map[string]*page{}}
	if err := s.read(); err != nil {
		return 0, err
	}
	files := slices.Sorted(maps.Keys(s.pages))
	for _, file := range files {
		s.links(s.pages[file])
	}
	if err := errors.Join(s.errs...); err != nil {
		return 0, err
	}
	for _, file := range files {
		if err := s.write(s.pages[file]); err != nil {
			return 0, err
		}
	}
	return len(files), s.writeSearch(files)
}

// read reads the documents: those at the top of the repository, and all below docs.
func (s *site) read() error {
	files, err := filepath.Glob(filepath.Join(s.top, "*.md"))
	if err != nil {
		return err
	}
	err = filepath.WalkDir(filepath.Join(s.top, "docs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := markdown.Convert(text, &b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		body, err := nethtml.Parse(&b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		file, err := filepath.Rel(s.top, name)
		if err != nil {
			return err
		}
		p := &page{file: filepath.ToSlash(file), ids: map[string]bool{}, body: body}
		for n := range body.Descendants() {
			for _, a := range n.Attr {
				if a.Key == "id" || a.Key == "name" {
					p.ids[a.Val] = true
				}
			}
			if n.Type == nethtml.ElementNode && n.Data == "h1" && p.title == "" {
				p.title = textOf(n)
			}
		}
		s.pages[p.file] = p
	}
	return nil
}

func textOf(n *nethtml.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == nethtml.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// links checks the links of a page, and makes them lead to the site.
func (s *site) links(p *page) {
	for n := range p.body.Descendants() {
		for i, a := range n.Attr {
			if a.Key != "href" && a.Key != "src" && a.Key != "srcset" {
				continue
			}
			to, err := s.target(p, a.Val)
			if err != nil {
				s.errs = append(s.errs, fmt.Errorf("%s: the link %s is dead: %w", p.file, a.Val, err))
				continue
			}
			n.Attr[i].Val = to
		}
	}
}

// target returns where a link of a page leads in the site.
func (s *site) target(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return link, err
	}
	file := p.file
	if u.Path != "" {
		file = path.Join(path.Dir(p.file), u.Path)
	}
	to := s.pages[file]
	if to == nil {
		to = s.pages[path.Join(file, "README.md")]
	}
	if to != nil {
		if u.Fragment != "" && !to.ids[u.Fragment] {
			return "", fmt.Errorf("%s has no heading #%s", to.file, u.Fragment)
		}
		if u.Path == "" {
			return link, nil
		}
		return relative(p.url(), to.url()) + strings.TrimPrefix(link, u.Path), nil
	}
	st, err := os.Stat(filepath.Join(s.top, filepath.FromSlash(file)))
	switch {
	case err != nil || strings.HasPrefix(file, ".."):
		return "", errors.New("there is no such file in the repository")
	case st.IsDir() || !slices.Contains([]string{".png", ".svg", ".json", ".cast"}, path.Ext(file)):
		return repository + file, nil
	}
	return relative(p.url(), file), s.copy(file)
}

// relative returns the link from one path of the site to another.
func relative(from, to string) string {
	link, err := filepath.Rel(path.Dir("/"+from), "/"+to)
	if err != nil {
		return "/" + to
	}
	return filepath.ToSlash(link)
}

// copy copies a file of the repository into the site.
func (s *site) copy(file string) error {
	text, err := os.ReadFile(filepath.Join(s.top, file))
	if err != nil {
		return err
	}
	return s.writeFile(file, text)
}

func (s *site) writeFile(file string, text []byte) error {
	name := filepath.Join(s.out, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// entry is a line of the navigation.
type entry struct {
	Title, URL string
	Here       bool
}

// navigation returns the entries of files.
func (s *site) navigation(from *page, files ...string) []entry {
	var list []entry
	for _, file := range files {
		if p := s.pages[file]; p != nil {
			list = append(list, entry{p.title, relative(from.url(), p.url()), p == from})
		}
	}
	return list
}

func (s *site) below(dir string) []string {
	var files []string
	for file := range s.pages {
		if path.Dir(file) == dir {
			files = append(files, file)
		}
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(s.pages[a].title, s.pages[b].title) })
	return files
}

// write writes a page.
func (s *site) write(p *page) error {
	var body bytes.Buffer
	for n := range p.body.Descendants() {
		if n.Type == nethtml.ElementNode && n.Data == "body" {
			for c := range n.ChildNodes() {
				if err := nethtml.Render(&body, c); err != nil {
					return err
				}
			}
			break
		}
	}
	type group struct {
		Title   string
		Entries []entry
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Title string
		Home  string
		Root  string // the way to the root of the site, with a slash
		Nav   []group
		Body  template.HTML
	}{p.title, relative(p.url(), "index.html"), strings.TrimSuffix(relative(p.url(), "index.html"), "index.html"), []group{
		{"How to", s.navigation(p, s.below("docs/how-to")...)},
		{"Reference", s.navigation(p, s.below("docs/reference")...)},
		{"Explanation", s.navigation(p, append(s.below("docs/explanation"), "docs/decisions/README.md")...)},
		{"Project", s.navigation(p, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
	}, template.HTML(body.String())})
	if err != nil {
		return err
	}
	return s.writeFile(p.url(), b.Bytes())
}
