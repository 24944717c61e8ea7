package main

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	nethtml "golang.org/x/net/html"
)

//go:embed search.js
var searchScript []byte

// section is a part of a page that the search finds: a heading, with the text up to the next one.
type section struct {
	Title   string `json:"t"` // of the page
	Heading string `json:"h"`
	URL     string `json:"u"` // from the root of the site
	Text    string `json:"x"`
}

// headings are the elements that begin a section.
var headings = []string{"h1", "h2", "h3"}

// sections returns the parts of a page.
func sections(p *page) []section {
	list := []section{{Title: p.title, Heading: p.title, URL: p.url()}}
	inHeading := (*nethtml.Node)(nil)
	for n := range p.body.Descendants() {
		switch {
		case n.Type == nethtml.ElementNode && slices.Contains(headings, n.Data):
			inHeading = n
			s := section{Title: p.title, Heading: textOf(n), URL: p.url()}
			for _, a := range n.Attr {
				if a.Key == "id" {
					s.URL += "#" + a.Val
				}
			}
			list = append(list, s)
		case n.Type == nethtml.TextNode && (inHeading == nil || !within(n, inHeading)):
			list[len(list)-1].Text += n.Data + " "
		}
	}
	for i := range list {
		list[i].Text = strings.Join(strings.Fields(list[i].Text), " ")
	}
	return slices.DeleteFunc(list, func(s section) bool { return s.Text == "" })
}

// within reports whether a node is below another one.
func within(n, above *nethtml.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == above {
			return true
		}
	}
	return false
}

// writeSearch writes the index of the pages, and the script that searches it.
func (s *site) writeSearch(files []string) error {
	var all []section
	for _, file := range files {
		all = append(all, sections(s.pages[file])...)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := s.writeFile("search-index.js", slices.Concat([]byte("podrunIndex("), text, []byte(")\n"))); err != nil {
		return err
	}
	return s.writeFile("search.js", searchScript)
}
